#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/wheel_licences.py: a wheel names the licence of everything that it copied from Debian's packages."""
import os
import shutil
import subprocess
import sys

from sieve import Project, main, skip

sys.path.insert(0, os.path.join(os.environ["MOLSIEVE_SOURCE"], "scripts"))
sys.dont_write_bytecode = True
import wheel_licences  # noqa: E402


def copied_library():
    """Name of a library of an installed package, as auditwheel would name the copy."""
    if not shutil.which("dpkg-query"):
        skip("not Debian: no dpkg-query")
    listed = subprocess.run(["dpkg-query", "-L", "libyaml-0-2"], capture_output=True, text=True).stdout.split()
    name = next((os.path.basename(x) for x in listed if ".so." in x), None)
    if name is None or not os.path.exists("/usr/share/doc/libyaml-0-2/copyright"):
        skip("needs the package libyaml-0-2 with its copyright file")
    return name.replace(".so", "-0123abcd.so", 1)


def every_copied_file_has_a_licence_text_or_is_refused():
    with Project() as p:
        name = copied_library()
        for folder in ("w/molsieve.libs", "w/molsieve/_program/lib/molsieve/openbabel"):
            os.makedirs(p.path(folder))
        p.put("w/molsieve.libs/" + name, "")
        p.put("w/molsieve/__init__.py", "")
        assert wheel_licences.check(p.path("w")) == ["molsieve/LICENSES.third-party: it is not there"]
        assert wheel_licences.write(p.path("w")) == [] == wheel_licences.check(p.path("w"))
        text = open(p.path("w/molsieve/LICENSES.third-party")).read()
        assert "\nlibyaml-0-2 0." in text and "    molsieve.libs/%s\n" % name in text and "Kirill Simonov" in text, text
        p.put("w/molsieve/LICENSES.third-party", text + "Files: *\n    molsieve is no package here\n")  # texts may say anything
        assert wheel_licences.check(p.path("w")) == []
        p.put("w/molsieve/_program/lib/molsieve/openbabel/nobody.so", "")
        unnamed = "molsieve/_program/lib/molsieve/openbabel/nobody.so"
        assert wheel_licences.check(p.path("w")) == [unnamed + ": copied, and molsieve/LICENSES.third-party does not name it"]
        assert wheel_licences.write(p.path("w")) == [unnamed + ": of no package of Debian"]
        os.remove(p.path("w/" + unnamed))
        wheel_licences.DOC = p.path("none")
        assert wheel_licences.write(p.path("w")) == ["libyaml-0-2: no licence text in %s/libyaml-0-2/copyright" % p.path("none")]
        p.put("w/molsieve/LICENSES.third-party", text[:text.index("== libyaml-0-2\n")])
        assert wheel_licences.check(p.path("w")) == ["libyaml-0-2: molsieve/LICENSES.third-party has no text of its licence"]


main([every_copied_file_has_a_licence_text_or_is_refused])
