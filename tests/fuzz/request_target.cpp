// SPDX-License-Identifier: GPL-2.0-only
// Any bytes as a request to the chemistry worker give an answer or an error message. Only requests that do not
// parse texts are passed on: Open Babel's parsing of texts is contained, and tested elsewhere.
#define main worker_main
#include "chem/worker_program/worker.cpp"
#undef main

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t let_through[] = { 0, CH_OP_READS, CH_OP_WRITE, CH_OP_VERSION, 77 };
    std::string request(reinterpret_cast<const char *>(data), size);
    Out reply;
    if (size < 12)
        return 0;
    const uint32_t op = let_through[data[0] % 5];
    std::memcpy(&request[0], &op, sizeof op);
    std::memset(&request[4], 0, sizeof(double)); // no CPU limit
    (void)answer(request, reply);
    if (reply.s.size() < 20)
        abort();
    return 0;
}
