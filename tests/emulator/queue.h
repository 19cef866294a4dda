/* tests/emulator/queue.h - a stream, as both emulators (of CUDA, of NCCL) know it. A task returns
 * whether it is done; if not, it is called again. */
#ifndef EMU_QUEUE_H
#define EMU_QUEUE_H

#include <cstdint>
#include <deque>
#include <functional>

struct emu_graph;

struct emu_task {
    const char *name;
    std::function<bool()> run;
};

struct emu_stream {
    std::deque<emu_task> queue;
    uint64_t done;
    emu_graph *graph; /* being captured, or NULL */
    int device;
    bool busy; /* its front is being run */
    /* Called by another library than the one that made the stream. */
    void (*push)(emu_stream *s, emu_task t);
    void (*kernel)(emu_stream *s, emu_task t); /* likewise; may be captured */
};

#endif
