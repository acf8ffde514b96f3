#!/bin/sh
#     check_emulated.sh BOCHS KERNEL [MODEL]
# The kernels for AVX-512, its instruction for pairs of bf16 and AMX, run by an emulator: variant_bits
# must print the portable kernels' hashes there, too. BOCHS is a built tree of Bochs 3 (configured with
# --enable-x86-64 --enable-cpu-level=6 --enable-avx --enable-evex --enable-amx --enable-pci --with-nogui),
# KERNEL a Linux of 5.16 or newer for x86-64 (/boot/vmlinuz-*), MODEL a processor of Bochs
# (sapphire_rapids). Needs busybox (static), cpio, grub-mkrescue and xorriso; takes five minutes.
#
# Bochs of August 2026 needs four changes, or the kernels for bf16 and AMX are found to compute other
# sums, and are not used:
#   cpu/cpuid.cc: leaf 0xD says that there is XFD (EAX bit 4 of subleaf 1, ECX bit 2 of subleaf 18),
#     without which Linux has no tiles; its two registers are in the list of MSRs below;
#   cpu/avx/avx512_bf16.cc: VCVTNE2PS2BF16 reads the second half of its result beyond its operand;
#   cpu/avx/amx.cc: TDPBSUD takes the signed bytes for unsigned ones.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,7s/^# *//p' "$0" >&2; exit 2; }
bochs=$1 kernel=$2 model=${3:-sapphire_rapids}
subject=$PWD/build/tests/variant_bits
for program in busybox cpio grub-mkrescue xorriso; do
    command -v $program >/dev/null || { echo "check_emulated.sh: there is no $program" >&2; exit 2; }
done
for file in "$bochs/bochs" "$kernel" "$subject"; do
    [ -r "$file" ] || { echo "check_emulated.sh: there is no $file" >&2; exit 2; }
done
bochs=$(cd "$bochs" && pwd)
kernel=$(realpath "$kernel")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
variants="avx512 avx512bf16 amx"

# The system: init runs each variant alone.
mkdir -p "$folder/root/bin" "$folder/root/proc" "$folder/disk/boot/grub"
cp "$(command -v busybox)" "$folder/root/bin/busybox"
cp "$subject" "$folder/root/"
ldd "$subject" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$folder/root$(dirname "$library")"
    cp -L "$library" "$folder/root$library"
done
cat >"$folder/root/init" <<EOF
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
for variant in $variants; do
    echo "begins \$variant"
    /variant_bits \$variant
done
echo ends
/bin/busybox sleep 1
/bin/busybox poweroff -f
EOF
chmod +x "$folder/root/init"
(cd "$folder/root" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$folder/disk/boot/initrd"
cp "$kernel" "$folder/disk/boot/vmlinuz"
# Linux 6.1 takes fast short moves (FSRM, 580) for fast moves, which Bochs has not.
cat >"$folder/disk/boot/grub/grub.cfg" <<'EOF'
set timeout=0
menuentry check {
    linux /boot/vmlinuz console=ttyS0 quiet nokaslr mitigations=off clearcpuid=580
    initrd /boot/initrd
}
EOF
grub-mkrescue -o "$folder/disk.iso" "$folder/disk" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }

# The machine.
cp "$bochs/msrs.def" "$folder/msrs"
for register in 0x1c4 0x1c5; do # IA32_XFD, IA32_XFD_ERR
    echo "$register 0 00000000 00000000 00000000 00000000 00000000 00000000"
done >>"$folder/msrs"
cat >"$folder/machine" <<EOF
cpu: model=$model, count=1, ips=100000000, msrs=$folder/msrs, ignore_bad_msrs=1
memory: guest=512, host=512
romimage: file=$bochs/bios/BIOS-bochs-latest
vgaromimage: file=$bochs/bios/VGABIOS-lgpl/VGABIOS-lgpl-latest.bin
ata0-master: type=cdrom, path=$folder/disk.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$folder/serial
log: $folder/log
display_library: nogui
panic: action=fatal
EOF
timeout 1800 "$bochs/bochs" -q -f "$folder/machine" >"$folder/screen" 2>&1 || true # it ends with 1
tr -d '\r' <"$folder/serial" >"$folder/output"
grep -q '^ends$' "$folder/output" || { tail -n 20 "$folder/output" "$folder/log"; exit 1; }

"$subject" portable | grep '^hash' >"$folder/want"
failed=0
for variant in $variants; do
    sed -n "/^begins $variant\$/,/^begins\|^ends/p" "$folder/output" >"$folder/run"
    if grep -q '^skipped: '"$variant " "$folder/run"; then
        echo "$variant: not used: $model lacks it, or computes other sums"
        failed=1
    elif grep '^hash' "$folder/run" | cmp -s - "$folder/want"; then
        echo "$variant: $(wc -l <"$folder/want") hashes, those of the portable kernels here"
    else
        grep '^hash' "$folder/run" | diff - "$folder/want" | head -n 20
        failed=1
    fi
done
exit $failed
