// SPDX-License-Identifier: GPL-2.0-only
// chem/worker_program/worker_start.cpp - the worker before Open Babel is initialised: its descriptors, and requests for its version.
#include "chem/worker_program/worker.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace worker {

static const int folder_max = 256; // bytes of the name of a folder, with its end

static pid_t parent;

static void on_alarm(int)
{
    if (getppid() != parent)
        _exit(0);
}

void watch_parent()
{
    struct sigaction act = {};
    itimerval every = { { 1, 0 }, { 1, 0 } };
    parent = getppid();
    act.sa_handler = on_alarm;
    act.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &act, nullptr);
    setitimer(ITIMER_REAL, &every, nullptr);
}

int take_streams(int *in, int *out)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return errno == EMFILE || errno == ENFILE ? CH_EXIT_FILES : CH_EXIT_NULL;
    *in = fcntl(0, F_DUPFD_CLOEXEC, 3);
    *out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    return *in >= 0 && *out >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2 ? 0 : CH_EXIT_FILES;
}

void close_others()
{
    enum { CLOSE_RANGE = 436 }; // the same on all architectures; kernels before 5.9 do not have it
    if (syscall(CLOSE_RANGE, 3u, ~0u, 0u) == 0)
        return;
    rlimit files = {};
    getrlimit(RLIMIT_NOFILE, &files); // the soft limit may be lower than it was when they were opened
    const int end = files.rlim_max < 1 << 20 ? static_cast<int>(files.rlim_max) : 1 << 20;
    for (int fd = 3; fd < end; fd++)
        close(fd);
}

// The folder of this program and `below`; "" if that is not there.
static void beside_program(char found[folder_max], const char *below)
{
    char program[folder_max];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    char *const name = strrchr(program, '/');
    if (name != nullptr)
        *name = '\0';
    if (name == nullptr || std::snprintf(found, folder_max, "%s%s", program, below) >= folder_max ||
        access(found, R_OK | X_OK) != 0)
        found[0] = '\0';
}

void name_own_library()
{
    static const char *const own[][2] = { { "BABEL_DATADIR", "/../share/molsieve/openbabel" },
                                          { "BABEL_LIBDIR", "/../lib/molsieve/openbabel" } };
    for (const char *const *o : own) {
        char folder[folder_max];
        beside_program(folder, o[1]);
        if (folder[0] != '\0')
            setenv(o[0], folder, 0);
    }
}

static char *put_str(char *p, const char *s)
{
    const uint32_t n = static_cast<uint32_t>(strlen(s));
    std::memcpy(p, &n, sizeof n);
    std::memcpy(p + sizeof n, s, n);
    return p + sizeof n + n;
}

// Where Open Babel looks for its tables: in the folder of $BABEL_DATADIR or of its build, or in that of its version in there. ""
// if there are none.
static void find_tables(char found[folder_max])
{
    const char *const named = getenv("BABEL_DATADIR"), *const folder[] = { named != nullptr ? named : BABEL_DATADIR,
                                                                           BABEL_DATADIR };
    for (const char *where : folder)
        for (const char *version : { "/" BABEL_VERSION, "" }) {
            char table[folder_max + 32];
            if (std::snprintf(found, folder_max, "%s%s", where, version) >= folder_max)
                continue;
            std::snprintf(table, sizeof table, "%s/mmffbond.par", found);
            if (access(table, R_OK) == 0)
                return;
        }
    found[0] = '\0';
}

bool Requests::begin()
{
    if (!read_all(fd_, &length_, sizeof length_))
        return false;
    have_ = length_ == sizeof start_ ? length_ : 0;
    return read_all(fd_, start_, have_);
}

bool Requests::asks_version() const
{
    uint32_t op = 0;
    std::memcpy(&op, start_, sizeof op);
    return have_ > 0 && op == CH_OP_VERSION;
}

bool Requests::finish(std::string &request)
{
    if (length_ > CH_MESSAGE_MAX)
        return false;
    request.assign(start_, have_);
    request.resize(length_);
    return read_all(fd_, &request[have_], length_ - have_);
}

bool answer_version(Requests &requests, int out)
{
    const size_t head = 4 + 4 + 4 + 8; // number of bytes that follow, status, signal, CPU seconds
    char reply[folder_max + 64 + sizeof BABEL_VERSION + sizeof CH_PROTOCOL_VERSION] = "";
    char tables[folder_max];
    find_tables(tables);
    char *end = put_str(put_str(put_str(put_str(reply + head, ""), BABEL_VERSION), CH_PROTOCOL_VERSION), tables);
    const uint32_t n = static_cast<uint32_t>(end - reply - 4);
    std::memcpy(reply, &n, sizeof n);
    while (requests.begin()) {
        if (!requests.asks_version())
            return true;
        if (!write_all(out, reply, static_cast<size_t>(end - reply)))
            return false;
    }
    return false;
}

} // namespace worker
