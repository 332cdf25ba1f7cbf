//! Conditions nested deeper than there are convergence barriers: compile time stays linear, and the
//! results are the same.

use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{Shape, run};

/// Threads of the block, and bytes of the buffer per thread.
const THREADS: usize = 32;
const STRIDE: usize = 512;

fn buffer(values: [ArgValue; 1]) -> Vec<u8> {
    match values {
        [ArgValue::Buffer { bytes, .. }] => bytes,
        _ => panic!("the buffer is gone"),
    }
}

/// Nested conditions that each lane leaves at a different depth; its row of the buffer records
/// where.
fn nest(depth: usize) -> String {
    let mut text = format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 b)\n{{\n.reg .pred p;\n\
         .reg .b32 r<4>;\n.reg .b64 d<3>;\nld.param.u64 d1, [b];\nmov.u32 r1, %tid.x;\nmul.wide.u32 d2, r1, {STRIDE};\n\
         add.s64 d1, d1, d2;\nmul.lo.u32 r1, r1, 37;\nmov.u32 r2, 1;\n"
    );
    for level in 0..depth {
        text += &format!("setp.lt.u32 p, r1, {level};\n@p bra L{level};\nmad.lo.u32 r2, r2, 5, {level};\n");
    }
    for level in (0..depth).rev() {
        text += &format!("xor.b32 r2, r2, r1;\nL{level}:\nmad.lo.u32 r2, r2, 3, 1;\n");
    }
    text + "st.global.u32 [d1], r2;\nret;\n}\n"
}

/// The outer conditions reconverge, as many as keep the work linear; the rest computes the same
/// without reconvergence.
#[test]
fn deep_nests_compute_the_same() {
    const DEPTH: usize = 600;
    const DEEPEST: usize = 256;
    let text = nest(DEPTH);
    let shape = Shape { grid: [1, 1, 1], block: [THREADS as u32, 1, 1], smem: 0 };
    let values = || [ArgValue::Buffer { bytes: vec![0; STRIDE * THREADS], writable: true }];
    let module = sassafras::sim::ptx::parse(text.as_bytes()).0.unwrap();
    let mut right = values();
    sassafras::sim::ptx::run(&module, "k", shape, &mut right).unwrap();
    let right = buffer(right);
    assert!(right.chunks(STRIDE).any(|row| row[..4] != right[..4]));
    for target in ["sm_75", "sm_90", "sm_120"] {
        let output = compile(&text, &Options::new(target)).unwrap();
        let cubin = sassafras::cubin::read(&output.cubin).unwrap();
        let listing = sassafras::sass::listing::text(&cubin).unwrap();
        assert_eq!(listing.matches("BSSY").count(), DEEPEST, "{target}");
        let mut mine = values();
        run(&output.cubin, "k", shape, &mut mine).unwrap();
        assert!(buffer(mine) == right, "{target}");
    }
}
