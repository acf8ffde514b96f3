/* image_tree.h - the files of images below a directory, and their classes.
 *
 * The sub-directories of the directory are classes, in byte order of their names. What is below
 * them at any depth belongs to the class: files are in byte order of their paths. Links are
 * followed (data/walk.h). If images lie in the directory itself, no image has a class.
 *
 * Left out, with one line in the log: names that begin with a dot, what is below __MACOSX, and
 * names that are not those of images. Names of images of other formats, such as .heic, are listed:
 * the error on reading them says what to do.
 */
#ifndef LS_SOURCE_IMAGES_IMAGE_TREE_H
#define LS_SOURCE_IMAGES_IMAGE_TREE_H

#include <stdint.h>

#include "base/error.h"
#include "base/stamp.h"
#include "source/classes.h"

typedef struct ls_image_file {
    char *name; /* path below the directory of its class; of files that are given: the path */
    int class;
    uint64_t hash;  /* of the file, when the source was opened */
    ls_stamp stamp; /* its state then */
} ls_image_file;

typedef struct ls_image_tree {
    char *root;           /* NULL: files are given */
    ls_classes dirs;      /* names of classes; flat: one without a name */
    bool flat;            /* there are no classes */
    ls_image_file *files; /* [nfiles] in order of class and path */
    size_t nfiles;
    char *doubt; /* why the directories can hardly be classes, and what to do; NULL: they can */
} ls_image_tree;

/* Finds what is below t->root. LS_EINVAL: there are no images, or none in a class. */
ls_status ls_image_tree_find(ls_image_tree *t, ls_error *);
/* Takes a file that is given over. */
void ls_image_tree_add(ls_image_tree *, const char *path);
void ls_image_tree_free(ls_image_tree *);

/* Are there files below the directory that are named like images? */
bool ls_image_tree_is(const char *dir);

#endif
