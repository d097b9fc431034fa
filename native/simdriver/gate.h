/* Every function that the libraries export begins in a gate, which lets no call pass before the
 * library was initialised, and can make calls fail or hang on request.
 *
 * A gate is a few instructions with the exported name. It asks gate_result whether the call has a
 * fault, or comes before cuInit or nvmlInit; if not, it jumps to the function that the source defines, whose symbol is hidden and begins
 * with "real_". So a function cannot be written without its gate, and calls within the library do
 * not pass gates.
 *
 * Faults come from the state file (gpupool/hardware/simdriver_faults.py), for all programs of the
 * node, and from the variable GPUPOOL_SIM_FAULTS, for one program:
 *
 *   GPUPOOL_SIM_FAULTS='cuMemAlloc*=2,after=3,times=1; nvmlDeviceGetName=hang,card=1'
 */
#ifndef SIMDRIVER_GATE_H
#define SIMDRIVER_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "../interface/exports.h"
#include "layout.h"

#define PASS (-1)

/* What the library tells: the state, opened if need be (NULL: there is none); and the card that a
 * call is about, as an index into state->cards (-1: none). The arguments are the first six. */
struct sim_state *gate_state(void);
int gate_card(const struct sim_state *state, const char *call, const uintptr_t *arguments);

/* What a call returns that is not allowed yet, because the library was not initialised; else PASS. */
int gate_refusal(const char *call);
bool is_one_of(const char *call, const char *const *names); /* NULL ends the names */

/* The result of a call that fails; PASS if it does not. */
int gate_result(const char *call, const uintptr_t *arguments);

#undef CALL
#undef ALSO

/* Declares a function of the library that another file defines. */
#define CALL_OF(function, ...) int function(__VA_ARGS__) __asm__("real_" #function)

/* Defines a function that is exported through its gate. */
#define CALL(function, ...)         \
    CALL_OF(function, __VA_ARGS__); \
    int function(__VA_ARGS__)

#define ALSO(alias_name, function)                                             \
    extern __typeof__(function) alias_name __asm__("real_" #alias_name)        \
        __attribute__((alias("real_" #function)))

/* GATE(name) makes a gate; each library has one for each of its names. GATE_COMMON is needed once.
 * The arguments in registers are kept for the function, which finds those on the stack where its
 * caller put them. */
#if defined(__x86_64__)
#define GATE(symbol)                                             \
    __asm__(".pushsection .rodata\n"                            \
            "name_" #symbol ": .string \"" #symbol "\"\n"        \
            ".popsection\n"                                      \
            ".pushsection .text\n"                               \
            ".globl " #symbol "\n"                               \
            ".type " #symbol ",@function\n"                      \
            #symbol ":\n"                                        \
            "  lea name_" #symbol "(%rip), %rax\n"               \
            "  lea real_" #symbol "(%rip), %r10\n"               \
            "  jmp gate_common\n"                                \
            ".size " #symbol ", .-" #symbol "\n"                 \
            ".popsection\n");
#define GATE_COMMON                                              \
    __asm__(".pushsection .text\n"                               \
            ".type gate_common,@function\n"                      \
            "gate_common:\n"                                     \
            "  .cfi_startproc\n"                                 \
            "  push %r10\n"                                      \
            "  push %r9\n"                                       \
            "  push %r8\n"                                       \
            "  push %rcx\n"                                      \
            "  push %rdx\n"                                      \
            "  push %rsi\n"                                      \
            "  push %rdi\n"                                      \
            "  .cfi_adjust_cfa_offset 56\n"                      \
            "  mov %rax, %rdi\n"                                 \
            "  mov %rsp, %rsi\n"                                 \
            "  call gate_result\n"                               \
            "  pop %rdi\n"                                       \
            "  pop %rsi\n"                                       \
            "  pop %rdx\n"                                       \
            "  pop %rcx\n"                                       \
            "  pop %r8\n"                                        \
            "  pop %r9\n"                                        \
            "  pop %r10\n"                                       \
            "  .cfi_adjust_cfa_offset -56\n"                     \
            "  cmp $-1, %eax\n"                                  \
            "  jne 1f\n"                                         \
            "  jmp *%r10\n"                                      \
            "1: ret\n"                                           \
            "  .cfi_endproc\n"                                   \
            ".size gate_common, .-gate_common\n"                 \
            ".popsection\n");
#elif defined(__aarch64__)
#define GATE(symbol)                                             \
    __asm__(".pushsection .rodata\n"                            \
            "name_" #symbol ": .string \"" #symbol "\"\n"        \
            ".popsection\n"                                      \
            ".pushsection .text\n"                               \
            ".globl " #symbol "\n"                               \
            ".type " #symbol ",@function\n"                      \
            ".p2align 2\n"                                       \
            #symbol ":\n"                                        \
            "  adrp x16, name_" #symbol "\n"                     \
            "  add x16, x16, :lo12:name_" #symbol "\n"           \
            "  adrp x17, real_" #symbol "\n"                     \
            "  add x17, x17, :lo12:real_" #symbol "\n"           \
            "  b gate_common\n"                                  \
            ".size " #symbol ", .-" #symbol "\n"                 \
            ".popsection\n");
#define GATE_COMMON                                              \
    __asm__(".pushsection .text\n"                               \
            ".type gate_common,@function\n"                      \
            ".p2align 2\n"                                       \
            "gate_common:\n"                                     \
            "  .cfi_startproc\n"                                 \
            "  stp x29, x30, [sp, #-96]!\n"                      \
            "  .cfi_def_cfa_offset 96\n"                         \
            "  .cfi_offset x29, -96\n"                           \
            "  .cfi_offset x30, -88\n"                           \
            "  stp x0, x1, [sp, #16]\n"                          \
            "  stp x2, x3, [sp, #32]\n"                          \
            "  stp x4, x5, [sp, #48]\n"                          \
            "  stp x6, x7, [sp, #64]\n"                          \
            "  str x17, [sp, #80]\n"                             \
            "  mov x0, x16\n"                                    \
            "  add x1, sp, #16\n"                                \
            "  bl gate_result\n"                                 \
            "  mov w16, w0\n"                                    \
            "  ldr x17, [sp, #80]\n"                             \
            "  ldp x0, x1, [sp, #16]\n"                          \
            "  ldp x2, x3, [sp, #32]\n"                          \
            "  ldp x4, x5, [sp, #48]\n"                          \
            "  ldp x6, x7, [sp, #64]\n"                          \
            "  ldp x29, x30, [sp], #96\n"                        \
            "  .cfi_def_cfa_offset 0\n"                          \
            "  cmn w16, #1\n"                                    \
            "  b.ne 1f\n"                                        \
            "  br x17\n"                                         \
            "1: mov w0, w16\n"                                   \
            "  ret\n"                                            \
            "  .cfi_endproc\n"                                   \
            ".size gate_common, .-gate_common\n"                 \
            ".popsection\n");
#endif

#endif
