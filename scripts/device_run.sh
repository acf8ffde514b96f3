#!/bin/bash
# All that only a machine with a GPU can show, in one run of less than nine minutes, without a network:
# do the kernels and a training have the cores' bits there, and how fast are they?
#     device_run.sh [--device NAME] [--small] [--only PART]... [--limit SECONDS] [--tree BUILD] [FOLDER]
#     device_run.sh --pack [FOLDER]
# Writes FOLDER/summary.txt (a line a part), log.txt and figures.jsonl, and after each part copies them to
# $OUT, if that is set; FOLDER is build/device-run if none is given. A part that is done there is not done
# again unless --only names it, so a run that was cut off continues. A part that can't run says why. Exits
# with 1 if a part failed, with 77 if the device can't be used.
#
# --device: cuda (default), opencl, c. --small: small models, in seconds, on device c or a driver for tests.
# --pack: what build/ has (the program, tests of devices, their libraries) goes to a folder (build/device),
# for a machine that has no compiler or lacks libraries: there it is used if it runs.
# --tree: where the program is built (default: build). PYTHON: the one that has PyTorch (default: python3). Parts:
parts="host build machine tests fused16 bits train kernels tokens torch sanitizer"
set -u
cd "$(dirname "$0")/.." || exit 1
device=cuda small="" pack="" limit=530 only="" out="" tree=build
while [ $# -gt 0 ]; do
    case $1 in
    --device) device=${2-} && shift ;;
    --only) only="$only ${2-}" && shift ;;
    --limit) limit=${2-} && shift ;;
    --tree) tree=${2-} && shift ;;
    --small) small=--small ;;
    --pack) pack=1 ;;
    -*) sed -n '2,18s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    *) out=$1 ;;
    esac
    shift
done
for part in $only; do
    case " $parts " in
    *" $part "*) ;;
    *) echo "device_run.sh: there is no part $part; parts: $parts" >&2 && exit 2 ;;
    esac
done
python=${PYTHON:-python3}
tests="device_gemm_test device_row_kernels_test device_heads_test device_gpt_layers_test device_layers_test device_vision_layers_test
    device_experts_test infer_together_test serve_engine_test"
fused16=device_fused16_test

# ---- a folder for another machine ----

if [ "$pack" ]; then
    to=${out:-build/device}
    rm -rf "$to" && mkdir -p "$to/bin" "$to/exec" "$to/lib" || exit 1
    for program in "$tree/lockstep" $(printf "$tree/tests/%s " $tests $fused16); do
        cp "$program" "$to/exec/" || exit 1
        # Other programs of that machine need its own libraries.
        cat >"$to/bin/${program##*/}" <<'WRAPPER' && chmod +x "$to/bin/${program##*/}" || exit 1
#!/bin/sh
to=$(dirname "$(dirname "$(realpath "$0")")")
LD_LIBRARY_PATH=$to/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$to/exec/${0##*/}" "$@"
WRAPPER
        ldd "$program" | awk '$3 ~ "^/" {print $3}' |
            grep -v '/\(libc\|libm\|libdl\|librt\|libpthread\)\.so' | xargs -r cp -Lu -t "$to/lib"
    done
    "$to/bin/lockstep" --version >/dev/null || exit 1
    echo "packed: $to ($(du -sh "$to" | cut -f1)), for glibc $(cat "$to"/exec/* "$to"/lib/* | grep -ao 'GLIBC_2\.[0-9]*' | cut -c7- | sort -uV | tail -n 1) or newer"
    exit 0
fi

out=${out:-build/device-run}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
done_file=$out/parts.tsv log=$out/log.txt figures=$out/figures.jsonl
touch "$done_file" "$figures" "$log"
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
begun=$SECONDS
packed="" # why what was packed does not run here
bin=$(realpath -m "$tree") && tests_bin=$bin/tests
if [ "$tree" = build ] && [ -e build/device ]; then
    packed=$(build/device/bin/lockstep --version 2>&1 >/dev/null) && bin=$PWD/build/device/bin && tests_bin=$bin
fi
lockstep=$bin/lockstep
if [ "$tests_bin" = "$bin" ]; then # what another program has done counts no more
    cat build/device/exec/* | sha256sum >"$work/program"
    [ ! -e "$out/program" ] || cmp -s "$work/program" "$out/program" || : >"$done_file"
    cp "$work/program" "$out/program"
fi

# ---- the machine's libraries: looked for where images of GPUs and Python's packages have them, too ----

has() { command -v "$1" >/dev/null 2>&1; }
# has_library NAME: does the loader find one?
has_library() {
    local folder searched=${LD_LIBRARY_PATH-}
    { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -q "^[[:space:]]*$1" && return
    for folder in ${searched//:/ }; do compgen -G "$folder/$1*" >/dev/null && return; done
    return 1
}
# find_library NAME FOLDER...: lets the loader find it in the first folder that has one
find_library() {
    local name=$1 folder
    shift
    has_library "$name" && return
    for folder in "$@"; do
        compgen -G "$folder/$name*" >/dev/null || continue
        export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
        return
    done
}
for folder in /usr/local/nvidia/bin /usr/local/cuda/bin; do [ ! -d $folder ] || PATH=$PATH:$folder; done
if [ "${device%%:*}" = cuda ]; then
    find_library libcuda.so.1 /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib
    # shellcheck disable=SC2046 # a folder each
    find_library libnvrtc.so.1 "${CUDA_HOME:-/usr/local/cuda}"/{lib64,lib} /usr/local/cuda-1*/{lib64,lib} \
        $("$python" -c 'import sys; print(*(p + "/nvidia/" + x + "/lib" for p in sys.path for x in ("cu13", "cuda_nvrtc")))' 2>/dev/null)
fi

# ---- running ----

left() { echo $((limit - (SECONDS - begun))); }
# within SECONDS COMMAND...: its output goes to the log, and to $work/out. Fails after the time, too.
within() {
    local most=$1 rest
    shift
    rest=$(left)
    [ "$rest" -lt "$most" ] && most=$rest
    [ "$most" -gt 0 ] || { cut_off=1 && return 1; }
    echo "\$ $*" >>"$log"
    timeout -k 5 "$most" "$@" >"$work/out" 2>&1
    local code=$?
    if [ "$(wc -c <"$work/out")" -gt 400000 ]; then # the log stays small enough to be sent
        { head -c 200000 "$work/out" && echo " ..." && tail -c 200000 "$work/out"; } >>"$log"
    else
        cat "$work/out" >>"$log"
    fi
    case $code in
    0 | 77) ;;
    124 | 137) echo "no end after $most s" | tee -a "$work/out" >>"$log" && [ "$(left)" -gt 0 ] || cut_off=1 ;;
    *) echo "exit code $code" >>"$log" ;;
    esac
    return $code
}
last() { grep -v '^ *$' "$work/out" | tail -n 1 | sed "s/^lockstep: //; s/; this process can't use it again.*//" | cut -c1-400; }
# What the first test that failed said.
first_failure() { grep -a -m 3 'differ\|after kernel\|  of \|device .* failed\|is lost\|error\|ERROR' "$work/out" | sed "s/; this process can't use it again.*//" | tr '\n' ';' | cut -c1-300; }
# number KEY FILE: the number of this key of a JSON object
number() { sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" "$2" | tail -n 1; }
needs_program() { [ -x "$lockstep" ] || { note="there is no $lockstep: part build has failed" && return 77; }; }
# Without the library that compiles kernels, NVIDIA's program may do it, for this GPU.
compile_kernels() {
    local gpu
    has nvcc && has nvidia-smi || return
    gpu=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    within 200 env -u CUDA_HOME scripts/build_fatbin.sh "$lockstep" "$work/plugins" "${gpu/#90/90a}" && export LOCKSTEP_PLUGINS=$work/plugins
}
tries_device() { within 120 "$lockstep" bench machine --device "$device" --small --rounds 1 && touch "$work/works"; }
# Can the program use the device? The reason goes to $note.
needs_device() {
    needs_program || return
    [ ! -e "$work/works" ] || return 0
    if [ ! -e "$work/why_not" ]; then
        tries_device && return
        last >"$work/why_not"
        # A kernel that fails is what the parts are to show, each by itself.
        ! grep -q 'is lost\|no end after' "$work/why_not" || { rm "$work/why_not" && touch "$work/works" && return 0; }
        ! grep -q 'libnvrtc\|loading the kernels' "$work/why_not" || ! compile_kernels || ! tries_device || return 0
    fi
    note=$(cat "$work/why_not") unusable=77
    [ -z "$cut_off" ] || rm "$work/why_not"
    return 77
}

# ---- parts: each sets note, and returns 0, 77 if it can't run, or another number ----

part_host() {
    { uname -a; nproc; grep -h PRETTY_NAME /etc/os-release; ldd --version | head -n 1; free -m; df -h /tmp /dev/shm; ulimit -a
        grep -m1 "model name" /proc/cpuinfo; env | grep -i 'cuda\|nvidia\|LD_LIBRARY\|^TMPDIR\|^HOME'
        ldconfig -p | grep 'libcuda\.\|libnvrtc\|libnccl'; ls -l /dev/nvidia* /dev/dri; } >>"$log" 2>&1
    note="$(uname -m), $(nproc) cores"
    for tool in gcc cmake ninja nvcc compute-sanitizer "$python"; do has "$tool" && note="$note, $tool" || note="$note, no $tool"; done
    if has nvidia-smi && within 20 nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader; then
        note="$(last); $note"
        within 20 nvidia-smi && within 20 nvidia-smi -q -d COMPUTE,CLOCK,ECC || true
    else
        note="no nvidia-smi; $note"
    fi
    [ "${device%%:*}" != cuda ] || for library in libcuda.so.1 libnvrtc.so.1; do
        has_library $library || note="$note, no $library"
    done
}

part_build() {
    local make=Ninja missing=
    if [ "$tests_bin" = "$bin" ]; then note="uses what was packed in build/device" && return 0; fi
    [ -z "$packed" ] || packed="; what was packed does not run here: $(head -n 1 <<<"$packed" | cut -c1-150)"
    for tool in cmake pkg-config; do has $tool || missing="$missing $tool"; done
    has gcc || has cc || has clang || missing="$missing gcc"
    has ninja || has make || missing="$missing ninja"
    [ -z "$missing" ] || { note="not installed:$missing; pack a build elsewhere (--pack)$packed" && return 77; }
    has ninja || make="Unix Makefiles"
    [ -e "$tree/CMakeCache.txt" ] || within 60 cmake -S . -B "$tree" -G "$make" -DCMAKE_BUILD_TYPE=Release || {
        note="cmake: $(grep -m1 -E "not found|missing|No package|Could not" "$work/out" | cut -c1-120); pack a build elsewhere (--pack)$packed"
        return 77
    }
    # shellcheck disable=SC2086
    within 300 cmake --build "$tree" -j "$(nproc)" --target lockstep $tests $fused16 || { note=$(last) && return 1; }
    note="$($lockstep --version)"
}

part_machine() {
    needs_device || return
    within 60 "$lockstep" bench machine --device "$device" $small --json || { note=$(last) && return 1; }
    cp "$work/out" "$work/machine" && cat "$work/machine" >>"$figures"
    within 60 "$lockstep" bench machine --device "$device" $small || { note=$(last) && return 1; }
    note=$(awk -v to="$(number pinned_to_bytes_per_s "$work/machine")" -v from="$(number pinned_from_bytes_per_s "$work/machine")" \
        -v memory="$(number memory_bytes_per_s "$work/machine")" -v flops="$(number product_flops_per_s "$work/machine")" \
        'BEGIN {printf "to it %.2f GB/s, from it %.2f, its memory %.1f, products %.4g TFLOP/s", to/1e9, from/1e9, memory/1e9, flops/1e12}')
}

by_lines="stdbuf -oL" # what a test has said before it is stopped
has stdbuf || by_lines=""
sanitizer() { command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1; }
# blame COMMAND...: after a GPU was lost, twice again so that the kernel at fault is named, and its instruction.
blame() {
    grep -q 'is lost' "$work/out" && [ ! -e "$work/blamed" ] || return 0
    touch "$work/blamed"
    within 60 env CUDA_LAUNCH_BLOCKING=1 "$@" || said="$said; alone: $(first_failure)"
    [ -z "$(sanitizer)" ] || within 90 "$(sanitizer)" --target-processes all "$@" || said="$said; $(grep -a -m 1 'Invalid\|Misaligned\|Error' "$work/out")"
}
part_tests() {
    local passed=0 failed="" said=""
    needs_device || return
    for test in $tests; do
        [ -x "$tests_bin/$test" ] || { failed="$failed $test (not built)" && continue; }
        within 90 $by_lines env LOCKSTEP_TEST_DEVICE="$device" "$tests_bin/$test" ||
            { failed="$failed $test" && said=${said:-$(first_failure)} && blame $by_lines env LOCKSTEP_TEST_DEVICE="$device" "$tests_bin/$test"; }
        passed=$((passed + $(sed -n 's/.*PASSED.* \([0-9]*\) test.*/\1/p' "$work/out" | awk '{n += $1} END {print n + 0}')))
    done
    note="$passed test functions have the bits of the cores' kernels"
    [ -z "$failed" ] || { note="failed:$failed; $note; first: $said" && return 1; }
}

# Do tensor cores compute what their model in C says?
part_fused16() {
    needs_device || return
    [ "${device%%:*}" = cuda ] || { note="tensor cores are for cuda" && return 77; }
    [ -x "$tests_bin/$fused16" ] || { note="$fused16 is not built" && return 1; }
    within 120 $by_lines "$tests_bin/$fused16"
    local code=$?
    note=$(grep -a 'skipped:' "$work/out" | tail -n 1)
    note=${note:-$(grep -a 'elements differ' "$work/out" | sort | uniq | awk '{n++; wrong = wrong (/: 0 of/ ? "" : "; " $0)} END {print n + 0 " kinds of operands" (wrong ? wrong : ", none differs")}' | cut -c1-500)}
    [ $code -eq 0 ] || { note="$note; $(first_failure)" && return 1; }
    ! grep -q '^skipped' "$work/out" || return 77
}

# same_weights NAME CONFIG SET...: a few steps on the device and on the cores
same_weights() {
    local name=$1 config=$2 side on
    shift 2
    for side in cores device; do
        on=() && [ $side = cores ] || on=(--device "$device")
        within 120 "$lockstep" bench train "$config" -n 1 --steps 1 --json "$@" --set train.batch=2 --set train.virtual_workers=2 \
            --set train.micro_batch=1 --export "$work/$side" "${on[@]}" ||
            { note="${note:+$note; }$name on $side: $(last)" && return 1; }
        grep '^{' "$work/out" >"$work/$side.json"
    done
    if ! cmp -s "$work/cores/trained.safetensors" "$work/device/trained.safetensors"; then
        note="${note:+$note; }$name: other weights than on the cores, $(timeout 60 "$python" - "$work"/{cores,device}/trained.safetensors <<<"$differences" 2>/dev/null ||
            cmp -l "$work"/{cores,device}/trained.safetensors | wc -l | sed 's/$/ bytes/'); losses $(grep -ho '"losses": [^]]*]' "$work"/{cores,device}.json | tr '\n' ' ')"
        return 1
    fi
    cmp -s "$work/cores/weights.safetensors" "$work/cores/trained.safetensors" && { note="${note:+$note; }$name: nothing was trained" && return 1; }
    note="${note:+$note; }$name: $(sha256sum <"$work/device/trained.safetensors" | cut -c1-12) on both"
    rm -rf "$work/cores" "$work/device"
}
# Which tensors of two files of f32 differ, in how many numbers, and the first one's bits.
differences='import json, struct, sys
files = [open(name, "rb").read() for name in sys.argv[1:]]
begin = 8 + struct.unpack("<Q", files[0][:8])[0]
head, found = json.loads(files[0][8:begin]), []
for name, t in head.items():
    if name == "__metadata__": continue
    a, b = (x[begin + t["data_offsets"][0] : begin + t["data_offsets"][1]] for x in files)
    if a == b: continue
    a, b = memoryview(a).cast("I"), memoryview(b).cast("I")
    at = [i for i in range(len(a)) if a[i] != b[i]]
    found.append("%s: %d of %d, number %d %08x and %08x" % (name, len(at), len(a), at[0], a[at[0]], b[at[0]]))
print("%d of %d tensors: %s" % (len(found), len(head) - ("__metadata__" in head), "; ".join(found[:3])))'

part_bits() {
    needs_device || return
    local code=0
    if [ "$small" ]; then
        same_weights "tiny" configs/tiny.yaml || code=1
    else
        same_weights "12 M" configs/gpt-12m.yaml || code=1
        same_weights "124 M" configs/gpt2-124m.yaml --set model.context=256 || code=1
    fi
    same_weights "tiny in bf16" configs/tiny.yaml --set train.compute=bf16 || code=1
    return $code
}

# The program's own run, with checkpoints: one worker, two that share the device, the optimizer there, and two of
# which each reads the other's memory.
part_train() {
    local run=0 hashes one=$device failed=""
    needs_device || return
    case $one in *:*) ;; *) one=$one:0 ;; esac
    for args in "" "--device $device" "-n 2 --device $one" "--device $device --set parallel.optimizer_state=device" \
        "-n 2 --device $one --set parallel.optimizer_state=device --set parallel.device_link=peers"; do
        case $args in *peers) [ "${one%%:*}" != opencl ] || continue ;; esac
        run=$((run + 1))
        # shellcheck disable=SC2086
        within 60 "$lockstep" train configs/tiny.yaml -n 1 $args --set train.steps=2 --set train.batch=4 --set train.virtual_workers=2 \
            --set optim.warmup=1 --set data.val_fraction=0.02 --set train.eval_every=2 -o "$work/run-$run" || { failed="$failed; train $args: $(last)" && continue; }
        within 20 "$lockstep" ckpt hash "$work/run-$run" && grep -o '[0-9a-f]\{32\}' "$work/out" | tr '\n' ' ' >"$work/hash-$run"
        cmp -s "$work/hash-1" "$work/hash-$run" && continue
        within 20 "$lockstep" compare "$work/run-1" "$work/run-$run" || true
        failed="$failed; train $args: $(grep -a -m 2 'differ\|part' "$work/out" | tr '\n' ' ')"
    done
    hashes=$(sort -u "$work"/hash-* | wc -l)
    [ "$hashes" = 1 ] && [ -s "$work/hash-1" ] && [ -z "$failed" ] || { note="$run runs have $hashes hashes$failed" && return 1; }
    note="$run runs of configs/tiny.yaml have one hash: one and two workers, the optimizer on the device, the cores"
}

part_kernels() {
    needs_device || return
    within 100 "$lockstep" bench kernels --device "$device" $small --rounds 3 --json || { note=$(last) && return 1; }
    grep '^{' "$work/out" >"$work/kernels" && cat "$work/kernels" >>"$figures"
    note=$(awk -F'"gflops": ' '/"product"/ && !/attention"/ {split($2, x, "[,}]"); n++; sum += x[1]; if (x[1] > best) best = x[1]; if (!least || x[1] < least) least = x[1]}
        END {printf "%d products: %.4g to %.4g TFLOP/s, mean %.4g", n, least/1e3, best/1e3, sum/n/1e3}' "$work/kernels")
}

# The largest memory of the GPU that is in use, sampled while a command runs.
watch_memory() {
    has nvidia-smi || return 0
    while sleep 0.3; do nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits; done >"$work/used" 2>/dev/null &
    watcher=$!
}
used_memory() {
    has nvidia-smi || return 0
    kill "$watcher" && wait "$watcher" 2>/dev/null
    sort -n "$work/used" | tail -n 1 | sed 's/$/ MiB of the GPU in use/'
}

gpt2="configs/gpt2-124m.yaml --set train.batch=8 --set train.virtual_workers=1 --set train.micro_batch=8"
[ -z "$small" ] || gpt2="configs/tiny.yaml --set train.batch=2 --set train.virtual_workers=1"
part_tokens() {
    local used state code
    needs_device || return
    for state in memory device; do
        watch_memory
        # shellcheck disable=SC2086
        within 120 "$lockstep" bench train $gpt2 -n 1 --steps 4 --device "$device" --set parallel.optimizer_state=$state --json
        code=$?
        used=$(used_memory)
        [ $code -eq 0 ] || { note="${note:+$note; }optimizer_state=$state: $(last)" && return 1; }
        grep '^{' "$work/out" >"$work/tokens" && cat "$work/tokens" >>"$figures"
        note="${note:+$note; }$(number tokens_per_s "$work/tokens" | cut -c1-9) tokens/s, optimizer_state=$state${used:+, $used}"
    done
}

part_torch() {
    local way failed=
    needs_program || return
    has "$python" || { note="there is no $python" && return 77; }
    within 100 "$python" -c 'import torch; raise SystemExit(not torch.cuda.is_available())'
    case $? in
    0) ;;
    *) note="torch sees no GPU$(grep -a -m 1 Error "$work/out" | sed 's/^/: /')" && return 77 ;;
    esac
    # shellcheck disable=SC2086
    within 120 "$lockstep" bench train $gpt2 -n 1 --steps 4 --device "$device" --export "$work/export" || { note="export: $(last)" && return 1; }
    note=
    for way in "" --compile; do
        # shellcheck disable=SC2086
        within 150 "$python" -W ignore bench/peers/train.py "$work/export" --device cuda $way || { failed="${way:-eager}: $(last)" && continue; }
        grep '^{' "$work/out" >"$work/torch" && cat "$work/torch" >>"$figures"
        note="${note:+$note; }${way:-eager}: $("$python" -c 'import json, statistics, sys
x = json.load(open(sys.argv[1])); s = json.load(open(sys.argv[2] + "/settings.json"))
print("%.0f tokens/s, weights differ by %.1e" % (x["tokens"] / statistics.median(x["step_seconds"][2:]), x["weights_differ_by"]))' "$work/torch" "$work/export")"
    done
    [ -z "$failed" ] || { note="${note:+$note; }$failed" && return 1; }
}

part_sanitizer() {
    local tool check code=0
    needs_device || return
    [ "${device%%:*}" = cuda ] || { note="compute-sanitizer is for cuda" && return 77; }
    tool=$(sanitizer)
    [ "$tool" ] || { note="there is no compute-sanitizer" && return 77; }
    for check in memcheck racecheck; do
        within 120 "$tool" --tool $check --error-exitcode 9 --target-processes all "$lockstep" bench train configs/tiny.yaml -n 1 --steps 1 \
            --set train.batch=2 --set train.virtual_workers=1 --device "$device" || code=1
        note="${note:+$note; }$(grep -a SUMMARY "$work/out" | tail -n 1 | sed 's/=* //')"
        [ $code -eq 0 ] || note="$note ($check: $(last))"
    done
    return $code
}

# ---- all parts ----

summary() {
    printf '%-10s %-8s %5s  %s\n' part result s what
    for part in $parts; do
        grep "^$part	" "$done_file" | tail -n 1 | awk -F'\t' '{printf "%-10s %-8s %5s  %s\n", $1, $2, $3, $4}'
    done
}

status=0 unusable=0
for part in $parts; do
    if [ "$only" ]; then
        case " $only " in *" $part "*) ;; *) continue ;; esac
    elif grep -q "^$part	ok	" "$done_file"; then
        continue
    fi
    before=$SECONDS note="" cut_off=""
    echo "==== $part" >>"$log"
    if [ "$(left)" -le 0 ]; then
        note="no time was left of $limit s; the next run does it" code=77
    else
        part_$part
        code=$?
    fi
    [ "$code" -eq 0 ] || [ -z "$cut_off" ] || { note="cut off after $limit s in all; the next run does it${note:+ ($note)}" code=77; }
    case $code in 0) result=ok ;; 77) result=skipped ;; *) result=failed status=1 ;; esac
    grep -v "^$part	" "$done_file" >"$work/parts"
    printf '%s\t%s\t%s\t%s\n' "$part" $result $((SECONDS - before)) "$(printf %s "$note" | tr '\t\n' '  ')" >>"$work/parts"
    cp "$work/parts" "$done_file"
    summary >"$out/summary.txt"
    [ -z "${OUT-}" ] || [ "$(realpath "$OUT")" = "$out" ] || cp "$out"/{summary.txt,log.txt,figures.jsonl,parts.tsv} "$OUT/"
done
cat "$out/summary.txt"
[ $status -ne 0 ] || exit $unusable
exit 1
