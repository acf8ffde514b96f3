/* embedding.c - see embedding.h. */
#include "serve/embedding.h"

#include <stdlib.h>

#include "base/base64.h"
#include "infer/infer.h"

/* As 32-bit numbers, the lowest byte first. */
static ls_json *as_base64(const float *vector, int64_t width) {
    char *text = ls_base64_encode(vector, (size_t)width * sizeof *vector);
    ls_json *j = ls_json_new_text(text);
    free(text);
    return j;
}

static ls_json *as_list(const float *vector, int64_t width) {
    ls_json *list = ls_json_new_array();
    for (int64_t i = 0; i < width; i++) ls_json_push(list, ls_json_new_number((double)vector[i]));
    return list;
}

static bool has_all(const ls_text_answer *a) {
    for (size_t i = 0; i < a->n; i++)
        if (!a->replies[i].vector) return false;
    return true;
}

/* The status has been sent. Clients expect `data`, and none of them takes an error for vectors. */
static void write_given_up(ls_buf *out) {
    ls_refusal why = {.type = "unavailable_error"};
    ls_fail(&why.error, LS_EPEER,
            "the vectors were given up: three workers have died while they computed one, or the "
            "server ends; ask again");
    ls_answer_refuse(&why, out);
}

void ls_embedding_write(const ls_text_answer *a, ls_buf *out) {
    if (!has_all(a)) {
        write_given_up(out);
        return;
    }
    ls_json *o = ls_json_new_object(), *data = ls_json_new_array(), *usage = ls_json_new_object();
    int64_t width = ls_infer_width(&a->model->trained->model), tokens = 0;
    for (size_t i = 0; i < a->n; i++) {
        ls_json *one = ls_json_new_object();
        const float *vector = a->replies[i].vector;
        ls_json_set_text(one, "object", "embedding");
        ls_json_set_integer(one, "index", (int64_t)i);
        ls_json_set(one, "embedding",
                    a->request->base64 ? as_base64(vector, width) : as_list(vector, width));
        ls_json_push(data, one);
        tokens += a->replies[i].nprompt;
    }
    ls_json_set_integer(usage, "prompt_tokens", tokens);
    ls_json_set_integer(usage, "total_tokens", tokens);
    ls_json_set_text(o, "object", "list");
    ls_json_set(o, "data", data);
    ls_json_set_text(o, "model", ls_request_model_name(a->model, a->request->adapter));
    ls_json_set(o, "usage", usage);
    ls_json_write(o, 0, out);
    ls_json_free(o);
}
