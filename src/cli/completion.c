/* completion.c - the completion for bash, made from the tables of commands and config keys.
 *
 * bash splits words at '=', so that `--set train.steps=5` becomes the words --set, train.steps, =
 * and 5; the script joins an option and its value again. The completions come from the same tables
 * as the help texts; for options whose value is one of a few words, from `choices` below.
 */
#include <string.h>

#include "bench/measure.h"
#include "cli/cli.h"
#include "config/config.h"
#include "config/key_help.h"

/* The possible values of some options. */
static const char *const places[] = {"out", "in", "both"};
static const char *const transports[] = {"shm", "thread", "tcp", "mpi"};
static const char *const forms[] = {"safetensors", "gguf", "peft", "onnx"};
static const char *const types[] = {"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"};
static const char *const stored[] = {"as-stored", "f32",  "f16",  "bf16", "q8_0",
                                     "q5_1",      "q5_0", "q4_1", "q4_0"};
static const char *const caches[] = {"f32", "f16", "q8"};
static const char *const devices[] = {"cuda", "opencl", "c", "auto"};
static const char *const losses[] = {"assistant", "all", "completion"};
static const char *const meshes[] = {"auto"};
static const char *const methods[] = {"grid", "random", "asha", "pbt"};
static const char *const missing[] = {"drop", "mean"};
static const struct {
    const char *command, *option; /* NULL: of any command that has the option */
    const char *const *words;
    int n;
} choices[] = {
    {NULL, "device", devices, 4},
    {"bench", "op", bench_op_names, BENCH_N_OPS},
    {"bench", "dtype", bench_dtype_names, BENCH_N_DTYPES},
    {"bench", "redop", bench_redop_names, BENCH_N_REDOPS},
    {"bench", "place", places, 3},
    {"bench", "transport", transports, 4},
    {"import", "type", stored, 9},
    {"export", "to", forms, 4},
    {"export", "type", types, 8},
    {"serve", "cache", caches, 3},
    {"plan", "mesh", meshes, 1},
    {"tokens", "loss", losses, 3},
    {"tune", "method", methods, 4},
    {"data", "missing", missing, 2},
};
enum { NCHOICES = sizeof choices / sizeof *choices };

/* The shell functions of the script that complete a command's first and second word. */
static const struct {
    const char *command, *first, *second;
} words[] = {
    {"train", "_lockstep_configs_or_runs", ""},
    {"eval", "_lockstep_runs", "_lockstep_runs"},
    {"predict", "_lockstep_runs", "_lockstep_files"},
    {"generate", "_lockstep_runs", ""},
    {"chat", "_lockstep_runs", ""},
    {"serve", "_lockstep_runs", ""},
    {"compare", "_lockstep_runs", "_lockstep_runs"},
    {"report", "_lockstep_configs_and_runs", "_lockstep_runs"},
    {"plan", "_lockstep_plan", "_lockstep_plan"},
    {"bench", "_lockstep_words train generate comm kernels machine", "_lockstep_bench"},
    {"run", "_lockstep_commands", "_lockstep_files"},
    {"ckpt", "_lockstep_words hash show verify export list ledger", "_lockstep_runs"},
    {"scale", "_lockstep_runs", ""},
    {"replay", "_lockstep_runs", ""},
    {"batch", "_lockstep_configs_and_runs", ""},
    {"tune", "_lockstep_configs", ""},
    {"status", "_lockstep_dirs", "_lockstep_dirs"},
    {"watch", "_lockstep_dirs", "_lockstep_dirs"},
    {"data", "_lockstep_files", "_lockstep_files"},
    {"weights", "_lockstep_files", ""},
    {"tokens", "_lockstep_tokenizers", ""},
    {"import", "_lockstep_files", ""},
    {"export", "_lockstep_runs", ""},
    {"check", "_lockstep_configs", ""},
    {"help", "_lockstep_topics", "_lockstep_groups"},
};

static const char functions[] =
    "# bash completion of lockstep: eval \"$(lockstep help --bash)\"\n"
    "_lockstep_words() { mapfile -t COMPREPLY < <(compgen -W \"$*\" -- \"$cur\"); }\n"
    "_lockstep_files() {\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -f -X \"$1\" -- \"$cur\"; [ -z \"$1\" ] || compgen -d -- "
    "\"$cur\")\n"
    "}\n"
    "_lockstep_dirs() {\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
    "}\n"
    "_lockstep_commands() { mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"); }\n"
    "# Directories with a config.yaml that match the word, or in runs/; else all directories.\n"
    "_lockstep_runs() {\n"
    "    local path found=()\n"
    "    for path in \"$cur\"*/config.yaml runs/*/config.yaml; do\n"
    "        [ -f \"$path\" ] || continue\n"
    "        path=${path%/config.yaml}\n"
    "        [[ $path == \"$cur\"* && \" ${found[*]} \" != *\" $path \"* ]] && found+=(\"$path\")\n"
    "    done\n"
    "    _lockstep_dirs\n"
    "    [ ${#found[@]} -eq 0 ] || COMPREPLY=(\"${found[@]}\")\n"
    "}\n"
    "_lockstep_tokenizers() {\n"
    "    _lockstep_runs\n"
    "    local runs=(\"${COMPREPLY[@]}\")\n"
    "    _lockstep_files '!*.@(json|gguf)'\n"
    "    COMPREPLY+=(\"${runs[@]}\")\n"
    "}\n"
    "_lockstep_configs() { _lockstep_files '!*.y*ml'; }\n"
    "_lockstep_configs_or_runs() {\n"
    "    if [[ \" ${COMP_WORDS[*]} \" == *' --resume '* ]]; then _lockstep_runs; else "
    "_lockstep_configs; fi\n"
    "}\n"
    "_lockstep_configs_and_runs() {\n"
    "    _lockstep_configs\n"
    "    local path configs=(\"${COMPREPLY[@]}\")\n"
    "    _lockstep_runs\n"
    "    for path in \"${configs[@]}\"; do\n"
    "        [[ \" ${COMPREPLY[*]} \" == *\" $path \"* ]] || COMPREPLY+=(\"$path\")\n"
    "    done\n"
    "}\n"
    "_lockstep_plan() {\n"
    "    if [[ \" ${COMP_WORDS[*]} \" == *' --diff '* ]]; then _lockstep_files '!*.json'\n"
    "    elif [ \"$nwords\" -eq 0 ]; then _lockstep_configs; fi\n"
    "}\n"
    "_lockstep_bench() {\n"
    "    if [ \"$word\" = train ] || [ \"$word\" = generate ]; then _lockstep_configs; fi\n"
    "}\n";

static const char body[] =
    "_lockstep() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} before='' key=''\n"
    "    local options='' takes=' ' nwords=0 word='' i\n"
    "    COMPREPLY=()\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then _lockstep_words \"$_lockstep_all --help --version\"; "
    "return; fi\n"
    "    _lockstep_table \"$command\"\n"
    "    # Words before the cursor; `before` is the option whose value is completed.\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        if [[ $takes == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
    "            before=${COMP_WORDS[i]} key=''\n"
    "            [ \"${COMP_WORDS[i + 1]}\" = = ] && i=$((i + 1))\n"
    "            [ $((i + 1)) -ge \"$COMP_CWORD\" ] && break\n"
    "            i=$((i + 1)) key=${COMP_WORDS[i]}\n"
    "            if [ \"${COMP_WORDS[i + 1]}\" = = ]; then\n"
    "                i=$((i + 2))\n"
    "                [ \"$i\" -ge \"$COMP_CWORD\" ] && break\n"
    "            fi\n"
    "            before='' key=''\n"
    "        elif [[ ${COMP_WORDS[i]} != -* ]]; then\n"
    "            [ \"$nwords\" -eq 0 ] && word=${COMP_WORDS[i]}\n"
    "            nwords=$((nwords + 1))\n"
    "        fi\n"
    "    done\n"
    "    [ \"$cur\" = = ] && cur=''\n"
    "    if [ -n \"$before\" ]; then _lockstep_value \"$command\" \"$before\" \"$key\"\n"
    "    elif [[ $cur == -* ]]; then _lockstep_words \"--help $options\"\n"
    "    else _lockstep_word \"$command\" \"$nwords\"; fi\n"
    "}\n"
    "complete -F _lockstep lockstep\n";

/* Writes the options of each command, and which of them take a value. */
static void put_table(ls_buf *out) {
    ls_buf_printf(out, "_lockstep_table() {\n    case $1 in\n");
    for (int i = 0; cli_commands[i]; i++) {
        const ls_option *o = cli_commands[i]->options;
        ls_buf_printf(out, "    %s) options='", cli_commands[i]->name);
        for (int k = 0; o[k].name; k++) ls_buf_printf(out, "%s--%s", k ? " " : "", o[k].name);
        ls_buf_printf(out, "' takes=' ");
        for (int k = 0; o[k].name; k++) {
            if (!o[k].value || *o[k].value == '[') continue;
            ls_buf_printf(out, "--%s ", o[k].name);
            if (o[k].letter) ls_buf_printf(out, "-%c ", o[k].letter);
        }
        ls_buf_printf(out, "' ;;\n");
    }
    ls_buf_printf(out, "    esac\n}\n");
}

static void put_choices(const char *command, const char *option, ls_buf *out) {
    for (int i = 0; i < NCHOICES; i++) {
        if (choices[i].command && strcmp(choices[i].command, command) != 0) continue;
        if (strcmp(choices[i].option, option) != 0) continue;
        for (int k = 0; k < choices[i].n; k++) ls_buf_printf(out, " %s", choices[i].words[k]);
    }
}

/* Completes by the name that help gives the value. */
static void put_value_of(const ls_command *c, const ls_option *o, ls_buf *out) {
    ls_buf listed = {0};
    put_choices(c->name, o->name, &listed);
    bool is_file = strcmp(o->value, "FILE") == 0;
    bool is_dir = strcmp(o->value, "DIR") == 0 || strcmp(o->value, "RUN") == 0;
    if (listed.len || is_file || is_dir) {
        ls_buf_printf(out, "    '%s --%s'", c->name, o->name);
        if (o->letter) ls_buf_printf(out, " | '%s -%c'", c->name, o->letter);
        if (listed.len)
            ls_buf_printf(out, ") _lockstep_words%s ;;\n", listed.data);
        else
            ls_buf_printf(out, ") %s ;;\n", is_file ? "_lockstep_files" : "_lockstep_dirs");
    }
    ls_buf_free(&listed);
}

/* Writes the config's keys and the possible words of each. */
static void put_values(ls_buf *out) {
    ls_buf_printf(out, "_lockstep_value() {\n    case \"$1 $2\" in\n    *' --set') _lockstep_key "
                       "\"$3\" ;;\n");
    for (int i = 0; cli_commands[i]; i++)
        for (int k = 0; cli_commands[i]->options[k].name; k++)
            if (cli_commands[i]->options[k].value)
                put_value_of(cli_commands[i], &cli_commands[i]->options[k], out);
    ls_buf_printf(out, "    esac\n}\n_lockstep_key() {\n    case $1 in\n"
                       "    '') compopt -o nospace 2>/dev/null\n        _lockstep_words");
    for (int i = 0; ls_config_key_name(i); i++) ls_buf_printf(out, " %s=", ls_config_key_name(i));
    ls_buf_printf(out, " ;;\n");
    for (int i = 0; ls_config_key_name(i); i++) {
        const char *const *words_of = ls_config_key_words(i);
        if (!words_of) continue;
        ls_buf_printf(out, "    %s) _lockstep_words", ls_config_key_name(i));
        for (int k = 0; words_of[k]; k++) ls_buf_printf(out, " %s", words_of[k]);
        ls_buf_printf(out, " ;;\n");
    }
    ls_buf_printf(out, "    data.path) _lockstep_files ;;\n    esac\n}\n");
}

static void put_words(ls_buf *out) {
    ls_buf_printf(out, "_lockstep_all='");
    for (int i = 0; cli_commands[i]; i++)
        ls_buf_printf(out, "%s%s", i ? " " : "", cli_commands[i]->name);
    ls_buf_printf(out, "'\n_lockstep_topics() { _lockstep_words \"$_lockstep_all config\"; }\n"
                       "_lockstep_groups() {\n    [ \"$word\" != config ] || _lockstep_words");
    const char *last = "";
    for (int i = 0; ls_config_key_name(i); i++) {
        const char *key = ls_config_key_name(i);
        size_t n = strcspn(key, ".") + 1;
        if (strncmp(last, key, n) != 0) ls_buf_printf(out, " %.*s", (int)n - 1, key);
        last = key;
    }
    ls_buf_printf(out, "\n}\n_lockstep_word() {\n    case \"$1 $2\" in\n");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ls_buf_printf(out, "    '%s 0') %s ;;\n", words[i].command, words[i].first);
        if (*words[i].second)
            ls_buf_printf(out, "    '%s '*) %s ;;\n", words[i].command, words[i].second);
    }
    ls_buf_printf(out, "    esac\n}\n");
}

void cli_completion(ls_buf *out) {
    ls_buf_printf(out, "%s", functions);
    put_words(out);
    put_table(out);
    put_values(out);
    ls_buf_printf(out, "%s", body);
}
