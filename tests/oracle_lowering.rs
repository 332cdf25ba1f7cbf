//! Each lowering beside the incumbent's, on the machine.
//!
//! Input: `tests/cases/lowering/forms.txt`, one instruction form per line. Each becomes a kernel of 32 threads with edge
//! values; our cubin and that of ptxas for the same PTX run on the machine, and all memory they wrote is equal bit for bit.
//! The PTX interpreter executes the same text and leaves the same memory, up to the ISA's bounds (`support/judge.rs`).
//! A form whose incumbent cubin the machine cannot execute, or which the interpreter does not execute, has no anchor; `unanchored.txt` lists these, and no other may
//! come to them (`SASSAFRAS_BLESS=1` writes the list). Without ptxas the test says so and stops. `SASSAFRAS_CASE=a,b` takes only the
//! forms that contain one of the texts, `SASSAFRAS_SM=90,100` only these targets.

use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{Shape, run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "support/judge.rs"]
mod judge;

/// One target of each generation, and the one with 64-bit integer opcodes.
const TARGETS: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];
const THREADS: usize = 32;
/// Bytes of global memory per thread: inputs up to 160, results behind them.
const STRIDE: usize = 448;
const RESULTS: usize = 160;
/// Forms compiled together.
const CHUNK: usize = 50;

/// How a note begins on a form whose result the ISA leaves open to the incumbent, or where we follow it against the ISA.
const INCUMBENT_ONLY: &str = "incumbent only";

struct Form {
    text: String,
    compared: bool,
    /// Compared with the interpreter, too.
    interpreted: bool,
    /// The first target that has it: `[80] add.f16 ...` is of sm_80 and later.
    from: u32,
}

impl Form {
    fn on(&self, target: &str) -> bool {
        target.trim_start_matches("sm_").parse::<u32>().is_ok_and(|number| number >= self.from)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/lowering")
}

fn forms() -> Vec<Form> {
    let text = std::fs::read_to_string(folder().join("forms.txt")).unwrap();
    let form = |line: &str| {
        let (text, note) = line.split_once(" // ").unwrap_or((line, ""));
        let (from, text) = text.strip_prefix('[').and_then(|t| t.split_once("] ")).unwrap_or(("0", text));
        Form {
            text: text.to_string(),
            compared: note.is_empty() || note.starts_with(INCUMBENT_ONLY),
            interpreted: note.is_empty(),
            from: from.parse().unwrap(),
        }
    };
    text.lines().filter(|l| !l.starts_with("//") && !l.is_empty()).map(form).collect()
}

/// Stores of the result registers that a form names: kind, first byte, width, type.
fn stores(form: &str) -> String {
    const KINDS: [(char, usize, usize, &str); 5] =
        [('r', 0, 4, "b32"), ('d', 16, 8, "b64"), ('f', 48, 4, "f32"), ('e', 64, 8, "f64"), ('h', 96, 2, "b16")];
    let names: BTreeSet<&str> = form.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let mut out = String::new();
    for (kind, first, width, ty) in KINDS {
        // Register 1 may be a result, too; behind the others.
        for (place, number) in [4, 5, 6, 7, 1].into_iter().enumerate() {
            let name = format!("{kind}{number}");
            if names.contains(name.as_str()) && place < 4 || number == 1 && form.contains(&format!("{name},")) {
                let at = RESULTS + first + width * place.min(3);
                out += &format!("st.global.{ty} [io+{at}], {name};\n");
            }
        }
    }
    for number in [3, 4] {
        if names.contains(format!("p{number}").as_str()) {
            let at = RESULTS + 100 + 4 * number;
            out += &format!("selp.b32 r8, 1, 2, p{number};\nst.global.b32 [io+{at}], r8;\n");
        }
    }
    out
}

fn kernel(number: usize, form: &str) -> String {
    let loads: String = [
        ("b32", 'r', 0, 4),
        ("b64", 'd', 16, 8),
        ("f32", 'f', 40, 4),
        ("f64", 'e', 56, 8),
        ("b16", 'h', 80, 2),
        ("b32", 'x', 88, 4),
        ("b16", 'g', 100, 2),
    ]
    .iter()
    .flat_map(|(ty, kind, at, width)| {
        (0..3).map(move |i| format!("ld.global.{ty} {kind}{}, [io+{}];\n", i + 1, at + width * i))
    })
    .collect();
    format!(
        ".visible .entry k{number}(.param .u64 p) {{\n.reg .b32 r<10>, s, t; .reg .b64 d<10>, io; .reg .f32 f<10>; .reg .f64 e<10>;\n\
         .reg .b16 h<10>, g<4>; .reg .b32 x<4>; .reg .pred p<10>; .shared .align 16 .b8 sh[512]; .local .align 16 .b8 lo[64];\n\
         ld.param.u64 io, [p];\nmov.u32 t, %tid.x;\nmad.wide.u32 io, t, {STRIDE}, io;\nmov.u32 s, sh;\nmad.lo.u32 s, t, 16, s;\n\
         {loads}add.u64 d3, io, 128;\nand.b32 r9, r3, 63;\nsetp.lt.u32 p1, r1, 0x40000000;\nsetp.eq.u32 p2, r2, 9;\n\
         st.shared.u64 [s], d1;\nst.shared.u64 [s+8], d2;\nst.local.v2.u64 [lo], {{d1, d2}};\nst.local.v2.u64 [lo+16], {{d2, d1}};\n{form}\n{}\
         ld.shared.u64 d8, [s];\nst.global.u64 [io+400], d8;\nld.shared.u64 d8, [s+8];\nst.global.u64 [io+408], d8;\n\
         ld.local.u64 d8, [lo+16];\nst.global.u64 [io+416], d8;\nld.local.u64 d8, [lo+24];\nst.global.u64 [io+424], d8;\nret;\n}}\n",
        stores(form)
    )
}

fn module(target: &str, chunk: &[(usize, &Form)]) -> String {
    let head = format!(
        ".version 9.0\n.target {target}\n.address_size 64\n.global .align 8 .b32 gv[4];\n.const .align 8 .b32 cv[4] = {{1, 2, 3, 4}};\n"
    );
    chunk.iter().fold(head, |text, (number, form)| text + &kernel(*number, &form.text))
}

/// Numbers on edges, from a fixed sequence.
struct Edges(u64);

impl Edges {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0 ^ self.0 >> 33;
        x.wrapping_mul(0xff51afd7ed558ccd) ^ x >> 29
    }
    fn of(&mut self, list: &[u64]) -> u64 {
        let (edge, random) = (self.next(), self.next());
        if edge % 5 < 3 { list[(random % list.len() as u64) as usize] } else { random >> (random % 3 * 8) }
    }
    fn word(&mut self) -> u64 {
        self.of(&[
            0, 1, 2, 9, 31, 32, 33, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x3fffffff, 0x7fffffff, 0x80000000,
            0xffffffff,
        ]) & 0xffff_ffff
    }
    fn single(&mut self) -> u64 {
        let list = [
            0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000001, 0x7fffff,
            0x800000, 0x7f7fffff, 0x4f000000, 0x4effffff, 0xcf000000, 0x5f000000, 0x3f000000, 0x3fc00000, 0x40200000,
            0x43800000, 0xc3000000,
        ];
        self.of(&list) & 0xffff_ffff
    }
    /// Numbers of 16 bits: edges of f16 and of bf16.
    fn half(&mut self) -> u64 {
        let list = [
            0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0x3f80, 0xbf80, 0x7f80,
            0xff80, 0x7fc0, 0x7f, 0x80, 0x7f7f, 0x4000, 0x3800, 0xff,
        ];
        self.of(&list) & 0xffff
    }
    fn double(&mut self) -> u64 {
        let list = [
            0,
            1 << 63,
            0x3ff0000000000000,
            0xbff8000000000000,
            0x7ff0000000000000,
            0xfff0000000000000,
            0x7ff8000000000000,
            1,
            0x000fffffffffffff,
            0x0010000000000000,
            0x7fefffffffffffff,
            0x41e0000000000000,
            0xc1e0000000200000,
            0x43e0000000000000,
            0x43dfffffffffffff,
            0x3fe0000000000000,
            0x4004000000000000,
            0x47efffffefffffff,
            0x36a0000000000000,
            0x41dfffffffc00000,
        ];
        self.of(&list)
    }
}

fn inputs() -> Vec<u8> {
    let mut edges = Edges(5);
    let mut bytes = vec![0; THREADS * STRIDE];
    for thread in bytes.chunks_mut(STRIDE) {
        for i in 0..3 {
            thread[4 * i..][..4].copy_from_slice(&edges.word().to_le_bytes()[..4]);
            let long = edges.word() | edges.word() << 32;
            thread[16 + 8 * i..][..8].copy_from_slice(&long.to_le_bytes());
            thread[40 + 4 * i..][..4].copy_from_slice(&edges.single().to_le_bytes()[..4]);
            thread[56 + 8 * i..][..8].copy_from_slice(&edges.double().to_le_bytes());
            thread[80 + 2 * i..][..2].copy_from_slice(&edges.word().to_le_bytes()[..2]);
        }
        for i in 0..4 {
            thread[128 + 8 * i..][..8].copy_from_slice(&(edges.word() | edges.word() << 32).to_le_bytes());
        }
    }
    let mut halves = Edges(9);
    for thread in bytes.chunks_mut(STRIDE) {
        for i in 0..3 {
            let pair = halves.half() | halves.half() << 16;
            thread[88 + 4 * i..][..4].copy_from_slice(&pair.to_le_bytes()[..4]);
            thread[100 + 2 * i..][..2].copy_from_slice(&halves.half().to_le_bytes()[..2]);
        }
    }
    bytes
}

fn execute(cubin: &[u8], kernel: usize, input: &[u8]) -> Result<Vec<u8>, String> {
    let mut values = [ArgValue::Buffer { bytes: input.to_vec(), writable: true }];
    let shape = Shape { grid: [1; 3], block: [THREADS as u32, 1, 1], smem: 0 };
    run(cubin, &format!("k{kernel}"), shape, &mut values).map_err(|fault| fault.to_string())?;
    match values {
        [ArgValue::Buffer { bytes, .. }] => Ok(bytes),
        _ => Err("the buffer is gone".to_string()),
    }
}

fn incumbent(ptxas: &Path, target: &str, source: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let (ptx, cubin) = (dir.path().join("k.ptx"), dir.path().join("k.cubin"));
    std::fs::write(&ptx, source).unwrap();
    let output = Command::new(ptxas).args(["-arch", target]).arg(&ptx).arg("-o").arg(&cubin).output().unwrap();
    assert!(output.status.success(), "ptxas -arch {target}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(&cubin).unwrap()
}

/// What is wrong with some forms on a target, and which have no anchor.
fn compare(ptxas: &Path, target: &str, chunk: &[(usize, &Form)], input: &[u8]) -> (Vec<String>, Vec<String>) {
    let source = module(target, chunk);
    let (mut wrong, mut unanchored) = (Vec::new(), Vec::new());
    let ours = match compile(&source, &Options { verify_ir: true, ..Options::new(target) }) {
        Ok(output) => output.cubin,
        Err(diagnostics) => {
            let shown: String = diagnostics.iter().map(|d| d.render(target, &source)).collect();
            return (vec![shown], unanchored);
        }
    };
    let theirs = incumbent(ptxas, target, &source);
    for (number, form) in chunk {
        let mine = match execute(&ours, *number, input) {
            Ok(bytes) => bytes,
            Err(fault) => {
                wrong.push(format!("{target} {}: {fault}", form.text));
                continue;
            }
        };
        if !form.compared {
            continue;
        }
        let third = judge::interpret(&source, &format!("k{number}"), THREADS as u32, input);
        match third.map(|bytes| judge::difference(&form.text, STRIDE, RESULTS, &mine, &bytes)) {
            Ok(None) => {}
            Ok(Some(_)) if !form.interpreted => {}
            Ok(Some(difference)) => wrong.push(format!("{target} {}: {difference}", form.text)),
            Err(fault) if fault.to_string().contains("is not executed by the interpreter") => {
                unanchored.push(format!("{} // not interpreted", form.text));
            }
            Err(fault) => wrong.push(format!("{target} {}: the interpreter: {fault}", form.text)),
        }
        match execute(&theirs, *number, input) {
            Err(_) => unanchored.push(form.text.clone()),
            Ok(bytes) if bytes == mine => {}
            Ok(bytes) => {
                let at = (0..bytes.len()).find(|i| bytes[*i] != mine[*i]).unwrap_or(0);
                let (thread, byte) = (at / STRIDE, at % STRIDE / 4 * 4);
                let words = |b: &[u8]| {
                    b[thread * STRIDE + byte..][..8].iter().rev().map(|x| format!("{x:02x}")).collect::<String>()
                };
                wrong.push(format!(
                    "{target} {}: thread {thread} byte {byte}: {} and not {}",
                    form.text,
                    words(&mine),
                    words(&bytes)
                ));
            }
        }
    }
    (wrong, unanchored)
}

/// The words of a list in the environment.
fn chosen(name: &str) -> Vec<String> {
    std::env::var(name).map_or(Vec::new(), |list| list.split(',').map(str::to_string).collect())
}

#[test]
fn lowerings_agree_with_the_incumbent() {
    let ptxas = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
    if !ptxas.exists() {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    }
    let (forms, input) = (forms(), inputs());
    assert!(forms.len() > 1000);
    let (texts, targets) = (chosen("SASSAFRAS_CASE"), chosen("SASSAFRAS_SM"));
    let taken = |form: &Form| texts.is_empty() || texts.iter().any(|text| form.text.contains(text));
    let numbered: Vec<(usize, &Form)> = forms.iter().enumerate().filter(|(_, form)| taken(form)).collect();
    let jobs: Vec<(&str, Vec<(usize, &Form)>)> = TARGETS
        .iter()
        .filter(|t| targets.is_empty() || targets.iter().any(|sm| **t == format!("sm_{sm}")))
        .flat_map(|t| {
            numbered.chunks(CHUNK).map(move |c| (*t, c.iter().filter(|(_, f)| f.on(t)).copied().collect::<Vec<_>>()))
        })
        .filter(|(_, c)| !c.is_empty())
        .collect();
    let part = |jobs: &[(&str, Vec<(usize, &Form)>)]| {
        let (mut wrong, mut unanchored) = (Vec::new(), Vec::new());
        for (target, chunk) in jobs {
            let (w, u) = compare(&ptxas, target, chunk, &input);
            wrong.extend(w);
            unanchored.extend(u.into_iter().map(|form| (form, target.to_string())));
        }
        (wrong, unanchored)
    };
    let (left, right) = jobs.split_at(jobs.len() / 2);
    let (wrong, unanchored) = std::thread::scope(|scope| {
        let other = scope.spawn(|| part(right));
        let mut mine = part(left);
        let theirs = other.join().unwrap();
        mine.0.extend(theirs.0);
        mine.1.extend(theirs.1);
        mine
    });
    assert!(wrong.is_empty(), "{} forms differ:\n{}", wrong.len(), wrong.join("\n"));
    let unanchored: BTreeSet<String> =
        unanchored.into_iter().map(|(form, target)| format!("{target} {form}\n")).collect();
    let now: String = unanchored.into_iter().collect();
    let path = folder().join("unanchored.txt");
    if std::env::var_os("SASSAFRAS_BLESS").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let new: Vec<&str> = now.lines().filter(|line| !listed.lines().any(|l| l == *line)).collect();
    assert!(
        new.is_empty(),
        "the machine cannot execute the incumbent's cubin of (or the interpreter does not execute):\n{}",
        new.join("\n")
    );
}
