#!/bin/sh
# Short runs of the fuzz targets (tests/fuzz), with clang: the same inputs each time, about 20 s in
# all. Failing inputs are saved in build/fuzz/found. RUNS=50 runs 50 times as many inputs.
set -eu
cd "$(dirname "$0")/.."

if ! command -v clang >/dev/null; then
    echo "skipped: fuzz: there is no clang"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
build=build/fuzz
scripts/build.sh fuzz fuzz

seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
mkdir -p "$build/found"
passed=0 failed=0

# Initial inputs.
frame() { # frame KIND NBYTES
    printf '\123\114'"\\$(printf %03o "$1")"'\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
    printf "\\$(printf %03o $(($2 % 256)))\\$(printf %03o $(($2 / 256)))"'\0\0\0\0\0\0'
}
word() { printf "\\$(printf %03o "$1")\\0\\0\\0"; }
mkdir "$seeds/conn" "$seeds/secure" "$seeds/views" "$seeds/links" "$seeds/join" "$seeds/watch" "$seeds/visit" "$seeds/tcp" "$seeds/etcd" "$seeds/environment" "$seeds/json" \
    "$seeds/yaml" "$seeds/safetensors" "$seeds/tokenizer" "$seeds/timeline" \
    "$seeds/image" "$seeds/webdataset" "$seeds/records"
{ frame 1 2; printf ab; frame 7 0; } >"$seeds/conn/frames"
for rank in 1 2; do
    { frame 1 32; word 1; word $rank; word 4; word 80; printf 'hosthost'; word 9; word 0; } \
        >"$seeds/join/hello$rank"
done
for kind in 1 2; do
    { frame $kind 24; printf 'AAAAAAAABBBBBBBB'; word 0; word 1; } >"$seeds/watch/greeting$kind"
done
{ frame 4 536; printf 'AAAAAAAABBBBBBBB'; word 0; word 1; printf 'news%0600d' 0; } >"$seeds/watch/news"
printf '\026\003\001\000\010\001\000\000\004abcd' >"$seeds/secure/hello"
for first in 0 1 7; do # JOIN, BEGIN, ENDED, and the events that follow
    { printf "\\$(printf %03o $first)"
      for what in 0 4 5 3 2 1 7 6; do printf "\\0\\0\\0\\$(printf %03o $what)"; word 0; word 0; word 0; done; } \
        >"$seeds/views/sequence$first"
    cp "$seeds/views/sequence$first" "$seeds/links"
done
{ frame 3 9; printf 'an answer'; } >"$seeds/visit/answer"
{ for kind in 16 17 18 19 20; do frame $kind 3; printf 'abc'; done; } >"$seeds/tcp/frames"
etcd() { printf '%s%s' "$1" "$2" >"$seeds/etcd/$1"; } # etcd FIRST-BYTE BODY
etcd l '{"ID":"7"}'
etcd m '{"result":{"ID":"7","TTL":"9"}}'
etcd o '{"result":{"created":true}}
{"result":{"events":[{"type":"DELETE"}],"canceled":true,"compact_revision":"1","cancel_reason":"no leader"}}
{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}}
'
etcd p '{"header":{"revision":"5"},"succeeded":true,"responses":[{"response_put":{}}]}'
etcd q '{"header":{"revision":"5"},"kvs":[{"create_revision":"2","value":"dmFsdWU=","lease":"7"}]}'
etcd v '{"header":{"revision":"5"},"responses":[{"response_range":{"kvs":[{"create_revision":"2","value":"dmFsdWU=","lease":"7"}]}}],"token":"a"}'
etcd w '{"error":"etcdserver: invalid auth token","code":16,"token":"a"}'
printf '5HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n' >"$seeds/etcd/http"
printf '#-1\nnode[003-007,010],other-[1-2]x\n' >"$seeds/environment/nodes"
printf 'node[003-007,010],other-[1-2]x' >"$seeds/environment/list"
printf '{"a": [1, 2.5e3, "x\\u00e9", null, true], "b": {}}' >"$seeds/json/values"
cp configs/*.yaml "$seeds/yaml"
printf 'data: {path: a}\noptim:\n  groups: [{match: "*.bias", lr_scale: 2}, {match: h, nesterov: on}]\n' \
    >"$seeds/yaml/groups"
printf '{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"__metadata__":{"format":"pt"}}' \
    >"$seeds/safetensors/header"
mkdir "$seeds/gguf"
long() { word "$1"; printf '\0\0\0\0'; }
text() { long ${#1}; printf '%s' "$1"; }
{ printf '\002\003'; text general.alignment; word 4; word 8; text words; word 9; word 8; long 2; text a; text bc
  text x; word 6; word 1; text w; word 2; long 32; long 2; word 2; long 0; text n; word 1; long 3; word 0; long 40
  printf '%080d' 0; } >"$seeds/gguf/tensors"
mkdir "$seeds/grammar"
printf '\000^(a|[^b-d]{2,3}.)*\\d\\x41?$' >"$seeds/grammar/regex"
printf '\001{"type":"object","properties":{"a":{"$ref":"#/$defs/t"},"b":{"type":["integer","null"],"minimum":-3}},"required":["a"],"$defs":{"t":{"anyOf":[{"type":"array","items":{"$ref":"#"},"maxItems":3},{"type":"string","pattern":"^x"},{"enum":[1,"y"]}]}},"additionalProperties":{"type":"number","exclusiveMaximum":9}}' >"$seeds/grammar/schema"
mkdir "$seeds/weights" "$seeds/template"
cp tests/fuzz/chat.jinja "$seeds/template"
mkdir "$seeds/chat"
chats='{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}
{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}
{"instruction":"a","input":"b","output":"c","history":[["d","e"]]}
{"prompt":"a","completion":"b"}
{"text":"abc"}'
{ printf '{%% for m in messages %%}<{{ m.role }}>{{ m.content|trim }};{%% endfor %%}{{ "<assistant>" if add_generation_prompt }}\000%s' "$chats"; } >"$seeds/chat/lines"
python3 tests/weights/write_gguf.py >"$seeds/gguf/llama"
for kind in gpt2 llama; do python3 tests/weights/write_gguf.py $kind >"$seeds/gguf/tokenizer-$kind"; done
{ printf '\002'; cat "$seeds/gguf/llama"; } >"$seeds/weights/llama"
for family in gemma3 smollm3; do
    python3 tests/weights/write_gguf.py $family >"$seeds/gguf/$family"
    { printf '\002'; cat "$seeds/gguf/$family"; } >"$seeds/weights/$family"
done
for family in llama qwen2; do
    printf '\000{"model_type":"%s","hidden_size":8,"intermediate_size":4,"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":4,"max_position_embeddings":9,"rms_norm_eps":1e-5,"hidden_act":"silu","vocab_size":7,"eos_token_id":[1,2],"bos_token_id":null,"tie_word_embeddings":true' $family >"$seeds/weights/$family.json"
done
printf ',"rope_theta":1e4,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4.5,"original_max_position_embeddings":6},"mlp_bias":true}' >>"$seeds/weights/llama.json"
printf ',"use_sliding_window":true,"sliding_window":3,"max_window_layers":0,"rope_parameters":{"rope_theta":5,"type":"linear","factor":2}}' >>"$seeds/weights/qwen2.json"
printf '\000{"model_type":"gemma3_text","hidden_size":8,"intermediate_size":4,"num_hidden_layers":3,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":4,"hidden_activation":"gelu_pytorch_tanh","query_pre_attn_scalar":5,"sliding_window":3,"sliding_window_pattern":2,"layer_types":["sliding_attention","full_attention","sliding_attention"],"rope_local_base_freq":9,"rope_parameters":{"full_attention":{"rope_type":"linear","factor":2},"sliding_attention":{"rope_theta":9}},"vocab_size":7}' >"$seeds/weights/gemma3.json"
printf '\000{"model_type":"smollm3","hidden_size":8,"intermediate_size":4,"num_hidden_layers":4,"num_attention_heads":2,"num_key_value_heads":1,"no_rope_layers":[1,0,1,0],"no_rope_layer_interval":2,"use_sliding_window":true,"sliding_window":3,"max_window_layers":4,"layer_types":["sliding_attention","sliding_attention","sliding_attention","sliding_attention"],"rope_scaling":{"type":"yarn","factor":2,"original_max_position_embeddings":6},"vocab_size":7}' >"$seeds/weights/smollm3.json"
printf '\000{"model_type":"phi3","hidden_size":16,"intermediate_size":4,"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"max_position_embeddings":12,"original_max_position_embeddings":6,"partial_rotary_factor":0.5,"rope_scaling":{"type":"su","short_factor":[1,2],"long_factor":[3,4.5]},"sliding_window":3,"vocab_size":7}' >"$seeds/weights/phi3.json"
printf '\000{"model_type":"gpt2","n_embd":8,"n_layer":2,"n_head":2,"n_positions":9,"n_inner":3,"layer_norm_epsilon":0,"vocab_size":7}' >"$seeds/weights/gpt2"
printf '\001{"metadata":{},"weight_map":{"a":"a","b":"a","c":"c"}}' >"$seeds/weights/index"
mkdir "$seeds/tool"
called() { # called FORM CALL: forms are numbered as in tests/fuzz/tool_fuzz.c
    printf '%s%s\000<think>a\n</think>\n\nSo: %s' "$1" '{"properties":{"s":{"type":"string"},"n":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/t"}]}},"$defs":{"t":{"enum":[null,"x"]}}}' "$2"
}
called 0 '<tool_call>
{"name": "get", "arguments": {"s": "</tool_call>"}}
</tool_call>
<tool_call>{"arguments": "{\"a\": 1}", "name": "f"}</tool_call>' >"$seeds/tool/tagged"
called 1 '{"name": "get", "parameters": {"s": "a"}}' | tr -d '\n' | sed 's/<think>.*So: //' >"$seeds/tool/bare"
called 2 '[TOOL_CALLS] [{"name": "get", "arguments": {"n": 1}, "id": "abc123456"}, {"name": "f", "arguments": {}}]' >"$seeds/tool/list"
called 3 '[TOOL_CALLS]get[CALL_ID]abc123456[ARGS]{"n": 1}[TOOL_CALLS]f[ARGS]{}' >"$seeds/tool/named"
called 4 '<tool_call>
<function=get>
<parameter=s>
a
</parameter>
<parameter=n>
True
</parameter>
</function>
</tool_call><function=f></function>' >"$seeds/tool/texts"
called 5 '<tool_call>get
<arg_key>n</arg_key>
<arg_value>3</arg_value>
</tool_call><tool_call>f</tool_call>' >"$seeds/tool/keys"
called 6 '<TOOLCALL>[{"name": "get", "arguments": {"n": 1}}]</TOOLCALL> So.' >"$seeds/tool/closed"
called 7 '<function=get>{"n": 1}</function><function=f>{}</function>' >"$seeds/tool/function"
mkdir "$seeds/adapter" "$seeds/published"
printf '{"peft_type":"LORA","r":8,"lora_alpha":16,"lora_dropout":0.1,"target_modules":["q_proj","v_proj"],"modules_to_save":["lm_head"],"bias":"none","use_rslora":true,"use_dora":false,"base_model_name_or_path":"/base","fan_in_fan_out":false,"rank_pattern":{}}' >"$seeds/adapter/lora"
printf '{"peft_type":"LORA","r":4,"target_modules":"all-linear","task_type":"CAUSAL_LM"}' >"$seeds/adapter/all"
{ printf '{"config":'; tail -c +2 "$seeds/weights/llama.json"; printf ',"generation":{"do_sample":true,"temperature":0.6,"top_p":0.9,"top_k":20,"min_p":0.1,"repetition_penalty":1.1,"eos_token_id":[1,2]},"template":"{%% for m in messages %%}<{{ m.role }}>{{ m.content }}{{ eos_token }}{%% endfor %%}","bos_token":null,"eos_token":"</s>"}'; } >"$seeds/published/llama"
mkdir "$seeds/binary"
printf '\000\000\000\010\002\000\000\000\002\000\000\000\003abcdef' >"$seeds/binary/idx"
printf "\001\223NUMPY\001\000\071\000{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }12345678" >"$seeds/binary/npy"
printf '\003aabbccddeeffgghhiijj' >"$seeds/binary/tokens"
cp tests/fuzz/tokenizer*.json "$seeds/tokenizer"
cp tests/fuzz/timeline.json "$seeds/timeline"
mkdir "$seeds/response" "$seeds/index"
for set in 000 001 002 003 004 005 006 007 010 011 012 013 014 015 016 017 020 021; do
    printf "\\$set\\000\\000\\001\\377" >"$seeds/index/set$set"
done
printf '\000HTTP/1.1 302 Found\r\nLocation: /x\r\nHTTP/1.1 206 Part\r\nContent-Range: bytes 7-9/10\r\nETag: "a"\r\n' >"$seeds/response/part"
printf '\000HTTP/2 200\r\netag: W/"a"\r\nLast-Modified: Mon, 23 Nov 2026 01:00:00 GMT\r\n' >"$seeds/response/whole"
printf '\001shard-{008..011}.{tar,tgz{,.old}}' >"$seeds/response/braces"
cp tests/source/*.jpg tests/fuzz/*.png "$seeds/image"
cp tests/fuzz/samples.tar "$seeds/webdataset"
printf '\000a,"b ""x""",class\r\n1,2.5e3,dog\n3,4,"c\nat"\n' >"$seeds/records/csv"
printf '\001{"a":1,"b":[[1,2.5],[3,4]],"class":"x"}\n{"a":2,"b":[[1,2],[3,4]],"class":"y"}\n' >"$seeds/records/jsonl"
printf '\000a,b\n[],1\n"[3, 17]",2\n[ 5 ],3\n' >"$seeds/records/lists"
printf '\001{"a":[]}\n{"a":[1,2]}\n{"a":[3]}\n' >"$seeds/records/arrays"
printf '\003\n\r\n\013\n\001a\022\006\022\004\n\002ab' >"$seeds/records/message"
mkdir "$seeds/sets" && python3 tests/source/write_sets.py "$seeds/sets"
{ printf '\003'; tail -c +13 "$seeds/sets/images.tfrecord" | head -c 156; } >"$seeds/records/photo"
printf '\004\001\0\0\0\014\0\0\0\014\0\0\0' >"$seeds/records/shard"

mkdir "$seeds/mds"
n=0
for set in mds lists mdsphotos badphotos; do
    { printf "\\00$n"; cat "$seeds/sets/$set/index.json"; } >"$seeds/mds/$set"
    sed 's/shard\.1/..\/shard.1/' "$seeds/mds/$set" >"$seeds/mds/$set-outside"
    n=$((n + 1))
done

target() { # target NAME RUNS
    log=$seeds/log
    echo "== fuzz: $1"
    if "$build/tests/fuzz/$1_fuzz" -seed=1 -runs=$(($2 * ${RUNS:-1})) -max_len=4096 -timeout=20 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="$build/found/$1-" "$seeds/$1" >"$log" 2>&1; then
        passed=$((passed + 1))
        sed -n -E '/average_exec_per_sec|number_of_executed/p' "$log"
    else
        failed=$((failed + 1))
        tail -n 60 "$log"
    fi
}

target conn 60000
target join 35000
target secure 8000
target views 20000
target links 500
target watch 35000
target visit 40000
target tcp 12000
target etcd 12000
target environment 60000
target json 90000
target yaml 35000
target safetensors 9000
target gguf 12000
target weights 12000
target tokenizer 12000
target grammar 8000
target template 12000
target chat 8000
target tool 12000
target adapter 500
target published 8000
target binary 20000
target timeline 12000
target image 10000
target webdataset 5000
target records 8000
target mds 6000
target response 60000
target index 3000

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
