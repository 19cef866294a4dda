# SPDX-License-Identifier: Apache-2.0
"""python3 -m molsieve.nvidia IN.pth OUT.safetensors - a checkpoint of NVIDIA's SE3Transformer as safetensors.

`molsieve model import OUT.safetensors --from nvidia` reads OUT. Needs torch and safetensors: pip install 'molsieve[torch]'. The
checkpoint is read with weights_only, so nothing in it is executed."""
from __future__ import annotations

import sys


def convert(checkpoint: str, output: str) -> int:
    """Writes the tensors of the checkpoint's state_dict, or of a file that is one, as float32 or bfloat16; returns how many."""
    import torch
    from safetensors.torch import save_file

    content = torch.load(checkpoint, map_location="cpu", weights_only=True)
    state = content.get("state_dict", content)
    tensors = {name: x.detach().contiguous() for name, x in state.items() if isinstance(x, torch.Tensor)}
    if not tensors:
        raise ValueError("%s: no state_dict with tensors" % checkpoint)
    save_file({name: x if x.dtype == torch.bfloat16 else x.float() for name, x in tensors.items()}, output)
    return len(tensors)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        n = convert(sys.argv[1], sys.argv[2])
    except ImportError as e:
        print("%s; pip install 'molsieve[torch]'" % e, file=sys.stderr)
        return 6
    except Exception as e:  # whatever torch finds wrong with the file
        print("%s: %s" % (sys.argv[1], e), file=sys.stderr)
        return 5
    print("%s: %d tensors" % (sys.argv[2], n))
    return 0


if __name__ == "__main__":
    sys.exit(main())
