/* SPDX-License-Identifier: Apache-2.0 */
/* What a cmocka program (ended.c) tells watch (watch.c): the value of a signal SIGRTMIN. */
#ifndef TESTS_ENDED_H
#define TESTS_ENDED_H

#define TEST_WATCHER "MOLSIEVE_TEST_WATCHER" /* environment: process id of watch */

enum {
    TEST_BEGINS = 1,   /* the program, or a group of its tests */
    TEST_ENDS = 2,     /* all tests of a group were run */
    TEST_COPY_ENDS = 3 /* by a forked child, which should have ended within its test */
};

#endif
