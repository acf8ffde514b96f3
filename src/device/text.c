/* text.c - the text of the kernels, as files have it, for the compilers of devices. */
#include "device/kernels.h"

/* The assembler reads the files; LS_DEVICE_FOLDER is that of this file. */
#define BEGIN(symbol)                                                                              \
    ".section .rodata\n.global " #symbol "\n.type " #symbol ", %object\n" #symbol ":\n"
#define FILE_AT(path) ".incbin \"" LS_DEVICE_FOLDER path "\"\n"
#define END           ".byte 0\n.previous\n"

__asm__(BEGIN(ls_device_opencl_text) FILE_AT("/dialect.cl") END);
__asm__(BEGIN(ls_device_cuda_text) FILE_AT("/dialect.cu") END);
/* A literal may have 4095 characters, so the assembler repeats what the files have in common. */
__asm__(BEGIN(ls_device_kernels_text) ".irp kernel"
#define HELPER_OF(name)              "," #name
#define NAME_OF(name, items, params) "," #name
        LS_DEVICE_HELPERS(HELPER_OF)
            LS_DEVICE_KERNELS(NAME_OF) "\n" FILE_AT("/kernels/\\kernel\\().k") ".endr\n" END);

const ls_device_kernel_facts ls_device_kernels[LS_NDEVICE_KERNELS] = {
#define FACTS_OF(name, items, params) {#name, items, params},
    LS_DEVICE_KERNELS(FACTS_OF)};
