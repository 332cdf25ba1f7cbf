//! Executed instructions per lane for divisions and roots of ordinary operands, ours and ptxas's.
//!
//! The kernels load two operands, compute, and store (`cargo bench --bench division`), with both
//! compilers at -O3. Each row has, per operation and target, the executed instructions per lane as
//! ours/theirs: for the whole kernel, and beyond a kernel that adds instead. Instructions under a
//! false guard do not count, NOPs do. A row in which ours are more ends with `more` and makes the
//! exit status 1.

use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Shape, run_as};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const TARGETS: [&str; 6] = ["sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"];
const LANES: u64 = 32;

/// Operation, type, operand pattern, operands of lane `i`.
struct Row {
    name: &'static str,
    ty: &'static str,
    two: bool,
    operands: fn(u64) -> [u64; 2],
    note: &'static str,
}

const ROWS: [Row; 11] = [
    Row { name: "div.rn.f32", ty: "f32", two: true, operands: singles, note: "" },
    Row { name: "div.full.f32", ty: "f32", two: true, operands: singles, note: "" },
    Row { name: "div.u32", ty: "u32", two: true, operands: words, note: "" },
    Row { name: "div.s64", ty: "s64", two: true, operands: longs, note: "more than 32 bits" },
    Row { name: "div.s64", ty: "s64", two: true, operands: words, note: "32 bits" },
    Row { name: "rem.u64", ty: "u64", two: true, operands: longs, note: "more than 32 bits" },
    Row { name: "rem.u64", ty: "u64", two: true, operands: words, note: "32 bits" },
    Row { name: "div.rn.f64", ty: "f64", two: true, operands: doubles, note: "" },
    Row { name: "sqrt.rn.f32", ty: "f32", two: false, operands: singles, note: "" },
    Row { name: "sqrt.rn.f64", ty: "f64", two: false, operands: doubles, note: "" },
    Row { name: "rcp.rn.f64", ty: "f64", two: false, operands: doubles, note: "" },
];

fn mixed(i: u64) -> u64 {
    let x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn singles(i: u64) -> [u64; 2] {
    [i, i + 100].map(|i| ((mixed(i) % 100_000) as f32 / 100.0 + 0.5).to_bits().into())
}

fn doubles(i: u64) -> [u64; 2] {
    [i, i + 100].map(|i| ((mixed(i) % 100_000) as f64 / 100.0 + 0.5).to_bits())
}

fn words(i: u64) -> [u64; 2] {
    [mixed(i) >> 33, (mixed(i + 100) >> 33 >> (i % 24)) + 1]
}

fn longs(i: u64) -> [u64; 2] {
    [mixed(i), mixed(i + 100) >> 12 | 1 << 40]
}

impl Row {
    fn bytes(&self) -> u64 {
        if self.ty.ends_with("64") { 8 } else { 4 }
    }

    /// The kernel; `with` replaces the operation.
    fn ptx(&self, target: &str, instead: Option<&str>) -> String {
        let (ty, bytes) = (self.ty, self.bytes());
        let load = if self.two { format!("ld.global.{ty} %b, [%pb];") } else { String::new() };
        let sources = if self.two { "%a, %b" } else { "%a" };
        let compute = match (instead, self.two) {
            (None, _) => format!("{} %a, {sources};", self.name),
            (Some(op), true) => format!("{op}.{ty} %a, %a, %b;"),
            (Some(op), false) => format!("{op}.{ty} %a, %a, %a;"),
        };
        format!(
            ".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pd) {{
    .reg .u32 %t; .reg .u64 %pa, %pb, %pd, %o; .reg .{ty} %a, %b;
    ld.param.u64 %pa, [pa]; ld.param.u64 %pb, [pb]; ld.param.u64 %pd, [pd];
    mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, {bytes};
    add.u64 %pa, %pa, %o; add.u64 %pb, %pb, %o; add.u64 %pd, %pd, %o;
    ld.global.{ty} %a, [%pa]; {load}
    {compute}
    st.global.{ty} [%pd], %a;
    ret;\n}}\n"
        )
    }

    /// Executed instructions per lane of a cubin.
    fn count(&self, cubin: &[u8]) -> Option<u64> {
        let operand = |which: usize| {
            let all =
                (0..LANES).flat_map(|i| (self.operands)(i)[which].to_le_bytes()[..self.bytes() as usize].to_vec());
            ArgValue::Buffer { bytes: all.collect(), writable: false }
        };
        let mut values = vec![
            operand(0),
            operand(1),
            ArgValue::Buffer { bytes: vec![0; (LANES * self.bytes()) as usize], writable: true },
        ];
        let shape = Shape { grid: [1, 1, 1], block: [LANES as u32, 1, 1], smem: 0 };
        let outcome = run_as(cubin, "k", shape, &mut values, How::default()).ok().filter(|outcome| outcome.ended)?;
        Some(outcome.stats.lane_instructions / LANES)
    }
}

fn theirs(ptxas: &Path, source: &str, target: &str, folder: &Path) -> Option<Vec<u8>> {
    let (from, to) = (folder.join("a.ptx"), folder.join("a.cubin"));
    std::fs::write(&from, source).ok()?;
    let mut command = Command::new(ptxas);
    command.args(["-arch", target, "-O3"]).arg(&from).arg("-o").arg(&to);
    command.output().ok()?.status.success().then(|| std::fs::read(&to).ok())?
}

fn main() -> ExitCode {
    let ptxas = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
    let Ok(folder) = tempfile::tempdir() else { return ExitCode::FAILURE };
    if !ptxas.exists() {
        println!("skipped: no {}", ptxas.display());
        return ExitCode::SUCCESS;
    }
    println!("{:34}{}", "", TARGETS.map(|t| format!("{t:>16}")).concat());
    let mut more = false;
    for row in &ROWS {
        let mut line = format!("{:14}{:20}", row.name, row.note);
        let mut worse = false;
        for target in TARGETS {
            let counts = [None, Some("add")].map(|instead| {
                let source = row.ptx(target, instead);
                let ours = compile(&source, &Options::new(target)).ok().and_then(|o| row.count(&o.cubin));
                ours.zip(theirs(&ptxas, &source, target, folder.path()).and_then(|cubin| row.count(&cubin)))
            });
            let [Some(whole), Some(base)] = counts else {
                line.push_str(&format!("{:>16}", "failed"));
                worse = true;
                continue;
            };
            let beyond = (whole.0 as i64 - base.0 as i64, whole.1 as i64 - base.1 as i64);
            worse |= beyond.0 > beyond.1;
            line.push_str(&format!("{:>16}", format!("{}/{} {}/{}", whole.0, whole.1, beyond.0, beyond.1)));
        }
        println!("{line}{}", if worse { "  more" } else { "" });
        more |= worse;
    }
    if more { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
