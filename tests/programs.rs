//! Random programs: the interpreter and our cubins on the machine leave the same memory.
//!
//! Input: seeds; each gives a program (`fuzz/programs.rs`) and chooses targets, limits of registers and levels. Checked: every cubin computes
//! what the interpreter does, bit for bit except for the bits of a NaN of 64 bits. A program that fails is made smaller, statement
//! by statement, and printed.
//!
//! `SASSAFRAS_PROGRAMS` is how many are tried (a few without it), `SASSAFRAS_SEED` the first seed, `SASSAFRAS_SHOW=1` prints the first one.

#[path = "fuzz/programs.rs"]
mod programs;
#[path = "fuzz/random.rs"]
mod random;

use programs::{Program, RESULTS, STRIDE, THREADS, pool, program};
use random::Random;
use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{Shape, run};
use std::path::Path;
use std::time::{Duration, Instant};

/// Without a number, as long as this.
const SHARE: Duration = Duration::from_secs(3);
const TARGETS: [(&str, u32); 6] =
    [("sm_75", 75), ("sm_80", 80), ("sm_89", 89), ("sm_90", 90), ("sm_100", 100), ("sm_120", 120)];
/// Blocks of a launch.
const BLOCKS: usize = 1;
/// Doubles among the results: first byte and how many.
const DOUBLES: (usize, usize) = (RESULTS + 144, 6);

/// What is compared: a target, its number, and how it is compiled.
struct Case {
    target: &'static str,
    options: Vec<Options>,
}

fn case(seed: u64) -> (Case, u32) {
    let mut random = Random::new(seed ^ 0x5eed);
    let (target, number) = TARGETS[random.below(TARGETS.len())];
    let plain = Options { fmad: false, verify_ir: true, ..Options::new(target) };
    let limit = [24, 32, 40, 64][random.below(4)];
    let options =
        vec![Options { opt_level: 0, ..plain.clone() }, plain.clone(), Options { max_registers: Some(limit), ..plain }];
    (Case { target, options }, number)
}

fn input(seed: u64) -> Vec<u8> {
    let mut random = Random::new(!seed);
    let mut bytes = vec![0u8; STRIDE * THREADS * BLOCKS];
    for word in bytes.chunks_mut(4) {
        let random_word = random.below(1 << 16) as u32 | (random.below(1 << 16) as u32) << 16;
        let edges =
            [0, 1, 2, 31, 32, 0x7f, 0x80, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x3f80_0000, 0x3c00_3c00];
        let value = match random.below(4) {
            0 => edges[random.below(edges.len())],
            1 => random_word >> random.below(32),
            // A float not far from 1.
            2 => random_word & 0x83ff_ffff | 0x3c00_0000,
            _ => random_word,
        };
        word.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn buffer(values: [ArgValue; 1]) -> Result<Vec<u8>, String> {
    match values {
        [ArgValue::Buffer { bytes, .. }] => Ok(bytes),
        _ => Err("the buffer is gone".to_string()),
    }
}

/// The first double word that differs, where it is not a NaN in both.
fn difference(mine: &[u8], right: &[u8]) -> Option<String> {
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..][..8].try_into().unwrap());
    let is_nan = |bytes: &[u8], at: usize| f64::from_bits(word(bytes, at)).is_nan();
    (0..mine.len()).step_by(8).find_map(|at| {
        let row = at % STRIDE;
        let double = (DOUBLES.0..DOUBLES.0 + 8 * DOUBLES.1).contains(&row);
        let same = word(mine, at) == word(right, at) || double && is_nan(mine, at) && is_nan(right, at);
        (!same).then(|| {
            format!("thread {} byte {row}: {:016x} and not {:016x}", at / STRIDE, word(mine, at), word(right, at))
        })
    })
}

/// What is wrong with a program.
fn judge(program: &Program, case: &Case, input: &[u8]) -> Result<(), String> {
    let text = program.text(case.target);
    let shape = Shape { grid: [BLOCKS as u32, 1, 1], block: [THREADS as u32, 1, 1], smem: 0 };
    let (module, diagnostics) = sassafras::sim::ptx::parse(text.as_bytes());
    let module = module.ok_or_else(|| format!("the program: {}", diagnostics[0].render("k.ptx", &text)))?;
    let values = || [ArgValue::Buffer { bytes: input.to_vec(), writable: true }];
    let mut right = values();
    sassafras::sim::ptx::run(&module, "k", shape, &mut right).map_err(|fault| format!("the interpreter: {fault}"))?;
    let right = buffer(right)?;
    for options in &case.options {
        let how =
            format!("-arch {} -O{} --maxrregcount {:?}", options.target, options.opt_level, options.max_registers);
        let output = compile(&text, options).map_err(|d| format!("{how}: {}", d[0].render("k.ptx", &text)))?;
        let mut mine = values();
        run(&output.cubin, "k", shape, &mut mine).map_err(|fault| format!("{how}: {fault}"))?;
        if let Some(difference) = difference(&buffer(mine)?, &right) {
            return Err(format!("{how}: {difference}"));
        }
    }
    Ok(())
}

/// A smaller program that fails too.
fn smaller(mut program: Program, case: &Case, input: &[u8]) -> Program {
    loop {
        let size = program.count();
        let tries = (0..size).rev().flat_map(|n| [(n, false), (n, true)]);
        let less = tries
            .map(|(n, flatten)| program.without(n, flatten))
            .find(|less| less.count() < size && judge(less, case, input).is_err());
        match less {
            Some(less) => program = less,
            None => return program,
        }
    }
}

#[test]
fn programs_compute_the_same_everywhere() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/lowering/forms.txt");
    let forms = std::fs::read_to_string(path).unwrap();
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let (first, most) = (number("SASSAFRAS_SEED").unwrap_or(1), number("SASSAFRAS_PROGRAMS"));
    let (started, mut failed, mut tried) = (Instant::now(), 0, 0);
    for seed in first.. {
        if most.map_or(started.elapsed() > SHARE, |most| seed - first >= most) || failed >= 5 {
            break;
        }
        let (case, sm) = case(seed);
        let (program, input) = (program(seed, &pool(&forms, sm)), input(seed));
        if seed == first && std::env::var_os("SASSAFRAS_SHOW").is_some() {
            println!("{}", program.text(case.target));
        }
        tried += 1;
        if judge(&program, &case, &input).is_err() {
            failed += 1;
            let small = smaller(program, &case, &input);
            let said = judge(&small, &case, &input).err().unwrap_or_default();
            println!("seed {seed}: {said}\n{}", small.text(case.target));
        }
    }
    println!("{tried} programs, {failed} failed");
    assert!(tried > 0 && failed == 0, "{failed} programs differ");
}

/// Conditions within conditions, which each lane leaves at another depth: what a row holds says where.
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

/// The outer conditions have a meeting place, so many that the work stays linear, and the rest computes the same without.
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
    let right = buffer(right).unwrap();
    assert!(right.chunks(STRIDE).any(|row| row[..4] != right[..4]));
    for target in ["sm_75", "sm_90", "sm_120"] {
        let output = compile(&text, &Options::new(target)).unwrap();
        let cubin = sassafras::cubin::read(&output.cubin).unwrap();
        let listing = sassafras::sass::listing::text(&cubin).unwrap();
        assert_eq!(listing.matches("BSSY").count(), DEEPEST, "{target}");
        let mut mine = values();
        run(&output.cubin, "k", shape, &mut mine).unwrap();
        assert_eq!(difference(&buffer(mine).unwrap(), &right), None, "{target}");
    }
}
