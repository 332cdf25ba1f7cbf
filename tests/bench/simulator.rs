//! Speed of the simulator: lane-instructions per second of CPU time on one core, without checks,
//! with checks, and with timing.
//!
//! The input is three small kernels, compiled by us for one target at -O3, and a compression that
//! clang compiled without optimisation (`lz.ptx`: long loops of loads, stores and branches over
//! local memory), at -O0 and -O3. It prints one line each, with the budget. `cargo bench --bench
//! simulator`.

use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Shape, run_as};

/// Required lane-instructions per second of a run with timing.
const BUDGET: f64 = 20e6;
const ROUNDS: u32 = 4000;
const LZ: &str = include_str!("lz.ptx");

/// CPU time of this thread, so that other processes do not count.
fn seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec, which the call fills in.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A loop around a body over %r1 to %r4, %f1 to %f3 and the shared address %s.
fn kernel(name: &str, body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry {name}(.param .u64 out, .param .u32 n) {{\n\
         .shared .align 4 .b8 memory[1024];\n.reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .f32 %f<8>;\n.reg .b64 %rd<8>;\n.reg .b32 %s;\n\
         ld.param.u64 %rd1, [out];\nld.param.u32 %r9, [n];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, 1;\nmov.u32 %r3, 7;\nmov.u32 %r4, 3;\n\
         cvt.rn.f32.u32 %f1, %r1;\nmov.f32 %f2, 0f3F000000;\nmov.f32 %f3, 0f3F800000;\n\
         mov.u32 %s, memory;\nshl.b32 %r5, %r1, 2;\nadd.u32 %s, %s, %r5;\nst.shared.u32 [%s], %r1;\n\
         loop:\n{body}\nsub.u32 %r9, %r9, 1;\nsetp.ne.u32 %p1, %r9, 0;\n@%p1 bra loop;\n\
         cvt.rzi.u32.f32 %r6, %f3;\nadd.u32 %r2, %r2, %r6;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n\
         st.global.u32 [%rd3], %r2;\nret;\n}}\n"
    )
}

fn main() {
    let bodies = [
        (
            "integers",
            "mad.lo.u32 %r2, %r2, %r3, %r4;\nxor.b32 %r3, %r3, %r2;\nshf.l.wrap.b32 %r4, %r4, %r2, 5;\nmin.u32 %r2, %r2, %r4;",
        ),
        (
            "floats",
            "fma.rn.f32 %f3, %f3, %f2, %f1;\nmul.f32 %f1, %f1, %f2;\nadd.f32 %f3, %f3, %f2;\nmax.f32 %f1, %f1, %f2;",
        ),
        (
            "memory",
            "ld.shared.u32 %r3, [%s];\nadd.u32 %r3, %r3, %r2;\nst.shared.u32 [%s], %r3;\nxor.b32 %r2, %r2, %r3;",
        ),
    ];
    let ways = [
        ("unwatched", How { watched: false, ..How::default() }),
        ("watched", How { timed: false, ..How::default() }),
        ("timed", How::default()),
    ];
    let small = bodies.map(|(name, body)| (name, name, kernel(name, body), 3));
    let long = [("lz -O0", 0), ("lz -O3", 3)].map(|(name, level)| (name, "kern", LZ.to_string(), level));
    for (name, entry, source, opt_level) in small.into_iter().chain(long) {
        let options = Options { opt_level, ..Options::new("sm_90") };
        let output = compile(&source, &options).unwrap_or_else(|errors| panic!("{errors:?}"));
        for (way, how) in ways {
            let mut args = vec![ArgValue::Buffer { bytes: vec![0; 1024], writable: true }];
            if entry == name {
                args.push(ArgValue::Scalar { bytes: ROUNDS.to_le_bytes().to_vec() });
            }
            let shape = Shape { grid: [1; 3], block: [256, 1, 1], smem: 0 };
            let start = seconds();
            let outcome = run_as(&output.cubin, entry, shape, &mut args, how).expect("runs");
            let seconds = seconds() - start;
            outcome.reports.iter().for_each(|report| println!("    {report}"));
            let speed = outcome.stats.lane_instructions as f64 / seconds;
            let kept = if speed >= BUDGET { "kept" } else { "MISSED" };
            println!("{name:10} {way:10} {:8.1} million lane-instructions per second (budget 20: {kept})", speed / 1e6);
        }
    }
}
