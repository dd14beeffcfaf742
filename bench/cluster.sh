# Reprints the tables of doc/cluster.md: bash bench/cluster.sh [BUILD_FOLDER]. Takes about ten minutes on an idle machine of two
# cores; needs root, ip and tc for the links of 100 and 1000 Mbit/s, which are network namespaces with tbf at both ends.
set -euo pipefail
root=$(dirname "$(dirname "$(realpath "$0")")")
build=$(realpath "${1:-$root/build}")
cmake --build "$build" --target attend attend-exchange >/dev/null
attend=$build/attend exchange=$build/attend-exchange
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
. "$root/tests/ranks/machines.bash"
machines_dir=$(mktemp -d)
trap 'machines_down; rm -rf "$machines_dir"' EXIT
cd "$machines_dir"
rounds=${ROUNDS:-5} sizes=${SIZES:-1 2 5 10 20 40} updates=${UPDATES:-6}

# over LINK COUNT PROGRAM...: mpirun over shared memory, TCP inside of the machine, or two machines with links of that rate.
over() {
    local link=$1 count=$2
    shift 2
    case $link in
    "shared memory") mpirun --oversubscribe --bind-to none --mca btl vader,self -np "$count" "$@" ;;
    TCP) mpirun --oversubscribe --bind-to none --mca btl tcp,self -np "$count" "$@" ;;
    *) machines_mpirun --mca btl tcp,self -np "$count" "$@" ;;
    esac
}

links=("shared memory" TCP)
if machines_possible; then
    links+=(1000mbit 100mbit)
else
    echo "left out: links of 100 and 1000 Mbit/s, as $machines_why"
fi

echo "Seconds of both exchanges of an update by 2 ranks, medians of $rounds; alpha + 2(R-1)/R n/bandwidth fitted to them"
# shellcheck disable=SC2086
for link in "${links[@]}"; do
    [[ $link != *mbit ]] || machines_up 2 "$link"
    over "$link" 2 "$exchange" "$rounds" $sizes >"times.$link"
    # Least squares with weights 1/t^2, so that every size counts by its relative error.
    awk -v link="$link" '{ r = $1; x = 2 * (r - 1) / r * $2; t = $3; w = 1 / (t * t); sw += w; sx += w * x; st += w * t; sxx += w * x * x; sxt += w * x * t
            printf "%s %g MB %.4f s\n", link, $2 / 1e6, t; xs[NR] = x; ts[NR] = t }
        END { slope = (sw * sxt - sx * st) / (sw * sxx - sx * sx); alpha = (st - slope * sx) / sw
            for (i = 1; i <= NR; i++) { e = (alpha + slope * xs[i]) / ts[i] - 1; if (e < 0) e = -e; if (e > worst) worst = e }
            printf "%s fitted alpha %.2f ms, bandwidth %.1f MB/s, at most %.0f%% off\n", link, 1e3 * alpha, 1e-6 / slope, 100 * worst
            printf "%g %g\n", alpha, 1 / slope >"fit." link }' "times.$link"
done

awk 'BEGIN { srand(3); for (i = 0; i < 1000; i++) { n = 18 + int(rand() * 5); s = t = ""
    for (w = 0; w < n; w++) { c = "w" int(rand() * 2000); s = s (w ? " " : "") c; t = "t" c (w ? " " : "") t }
    print s >"source"; print t >"target" } }'
train="train --source source --target target --model transformer --hidden 256 --ffn 1024 --layers 3 --heads 4 --batch-size 24
    --accumulate 2 --updates $updates --overwrite --save-every 1000000"

# seconds: of an update, from what a run says.
seconds() {
    sed -n 's/.* parameters : \([0-9.]*\) s : .*/\1/p' said | awk -v n="$updates" '{ print $1 / n }'
}
middle() {
    sort -n | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

echo "Seconds of an update of 2 slices, a transformer of 6.6 million parameters, medians of 3 runs in turn"
# shellcheck disable=SC2086
for turn in 1 2 3; do
    "$attend" $train --output m --threads 2 2>said && seconds >>"step.1 rank, 2 threads"
    for link in "${links[@]}"; do
        [[ $link != *mbit ]] || machines_up 2 "$link"
        over "$link" 2 "$attend" $train --output m --threads 1 >said 2>&1 && seconds >>"step.$link"
    done
done
echo "1 rank, 2 threads: $(middle <"step.1 rank, 2 threads")"
for link in "${links[@]}"; do
    echo "2 ranks, 1 thread each, $link: $(middle <"step.$link")"
done

# The step over a link by the model: that over shared memory, without its exchanges, and with the link's.
base=$(middle <"step.shared memory")
bytes=26226688
for link in "${links[@]}"; do
    [[ $link == *mbit ]] || continue
    awk -v base="$base" -v n=$bytes -v link="$link" -v real="$(middle <"step.$link")" '
        { alpha[NR] = $1; band[NR] = $2 }
        END { compute = base - alpha[1] - n / band[1]; step = compute + alpha[2] + n / band[2]
            printf "%s: %.3f s computed without overlap, %.3f s measured, ratio %.2f\n", link, step, real, step / real }' \
        "fit.shared memory" "fit.$link"
done

# R ranks, a slice each of `compute` seconds, on switched Ethernet: alpha as fitted for 1000 Mbit/s (where it was measured).
[ -e fit.1000mbit ] || exit 0
echo "Computed: updates per second of R slices by R ranks, times those of one rank; n = 26.2 MB, no overlap"
awk -v n=$bytes '{ alpha = $1; band = $2 }
    END { for (c = 0.5; c <= 4; c *= 2) for (gig = 1; gig <= 10; gig *= 10) {
        printf "slice of %g s, %d GbE:", c, gig
        for (R = 2; R <= 64; R *= 2) printf " %d %.1f", R, R * c / (c + alpha + 2 * (R - 1) / R * n / (band * gig))
        print "" } }' fit.1000mbit
