/* crc32c.h - CRC-32C (Castagnoli), as used in TFRecord files. Source: RFC 3720, appendix B.4. */
#ifndef LS_BASE_CRC32C_H
#define LS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t ls_crc32c(const void *data, size_t nbytes);

#endif
