/* fetch.h - files of http:// and https:// addresses, downloaded once into the cache.
 *
 * A download is a file of its own until it is complete: it is then renamed, and its hash is written
 * beside it. An interrupted one is resumed where the server allows that (ranges, and a validator
 * that shows that the file is still the same). Processes that want the same file wait for the one
 * that downloads it.
 *
 *     DIR/downloads/HASH-NAME         the file; HASH: of the address, NAME: the address's last part
 *     DIR/downloads/HASH-NAME.hash    its length, XXH3-128 and state: it is checked when it is
 *                                     used, and read again only if it was touched
 *     DIR/downloads/HASH-NAME.part    an incomplete download;  .from: its validator;  .lock
 *
 * A complete file is never downloaded again: remove it for a newer one. Certificates are verified;
 * SSL_CERT_FILE in the environment names a file of authorities in place of the system's.
 */
#ifndef LS_SOURCE_FETCH_H
#define LS_SOURCE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define LS_FETCH_NBYTES ((uint64_t)1000 * 1000 * 1000 * 1000) /* the longest file, by default */

bool ls_is_url(const char *path);
/* paths, one a line: relative ones are those of `dir`, unless it is NULL; addresses stay. The
 * caller frees them. */
char *ls_paths_from(const char *paths, const char *dir);

/* *path_p: the file in the cache; the caller frees it. `cache` NULL: $XDG_CACHE_HOME/lockstep, else
 * ~/.cache/lockstep. most_nbytes: the longest file. Errors: LS_EINVAL: the address, or a file that
 * is too long. LS_EIO: the server, after several attempts, or the disk. */
ls_status ls_fetch(const char *url, const char *cache, uint64_t most_nbytes, char **path_p,
                   ls_error *);

/* Paths, one a line: addresses become the files in the cache, also several that one address with
 * braces stands for (data/braces.h). The caller frees *local_p. */
ls_status ls_fetch_paths(const char *paths, const char *cache, uint64_t most_nbytes, char **local_p,
                         ls_error *);

#endif
