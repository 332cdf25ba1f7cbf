//! Shared by the tests of cubins: targets, small kernels, NVIDIA's tools.
//!
//! It compiles kernels with ptxas and returns the output of the tools, or `None` if they are not
//! installed. Every call works in a temporary folder.
#![allow(dead_code)]

pub use crate::vendor::wanted as tool;
use sassafras::cubin::*;
use sassafras::tables::elf::{ElfTarget, Layout};
use sassafras::tables::targets::TARGETS as TARGETS_TABLE;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

/// Every target of ptxas from sm_75 on.
pub const TARGETS: [&str; 23] = [
    "75", "80", "86", "87", "88", "89", "90", "90a", "100", "100a", "100f", "103", "103a", "103f", "110", "110a",
    "110f", "120", "120a", "120f", "121", "121a", "121f",
];

/// Small kernels by feature; the header is added for each target.
pub const KERNELS: [(&str, &str); 14] = [
    ("plain", include_str!("plain.ptx")),
    ("noparam", ".visible .entry k() { ret; }"),
    ("params", include_str!("params.ptx")),
    ("large", include_str!("large.ptx")),
    ("shared", include_str!("shared.ptx")),
    ("dynamic", include_str!("dynamic.ptx")),
    ("local", include_str!("local.ptx")),
    ("globals", include_str!("globals.ptx")),
    ("branches", include_str!("branches.ptx")),
    ("warp", include_str!("warp.ptx")),
    ("bounds", include_str!("bounds.ptx")),
    ("calls", include_str!("calls.ptx")),
    ("two", include_str!("two.ptx")),
    ("partly_read", include_str!("partly_read.ptx")),
];

/// Kernels in clusters, which targets with thread-block clusters have.
pub const CLUSTERS: (&str, &str) = ("clusters", include_str!("clusters.ptx"));

/// Every kernel with every target that supports it.
pub fn all_jobs() -> Vec<(&'static str, (&'static str, &'static str))> {
    let jobs = |target: &'static str| {
        let clusters = ElfTarget::of_sm(sm(target).0).is_some_and(|elf| elf.layout == Layout::Rela);
        KERNELS.into_iter().chain(clusters.then_some(CLUSTERS)).map(move |kernel| (target, kernel))
    };
    TARGETS.into_iter().flat_map(jobs).collect()
}

/// A handmade cubin that uses every part of the model; the code is not meant to run.
pub fn sample(sm: u32) -> Cubin {
    let base = TARGETS_TABLE.iter().filter(|t| t.sm == sm).find_map(|t| t.info());
    let (param_base, shared_base) = base.map_or((0, 0), |info| (info.param_base, info.shared_base));
    let first = Function {
        name: "first".into(),
        kernel: true,
        code: (0..512u32).map(|i| i as u8).collect(),
        labels: vec![Label {
            name: "$first$inner".into(),
            offset: 256,
            size: 256,
            binding: Binding::Local,
            frame: Some(8),
        }],
        registers: 24,
        barriers: 2,
        param_base,
        param_bytes: 12,
        params: vec![
            Param { ordinal: 0, offset: 0, size: 8, space: 4, pointee_align_log2: 2 },
            Param { ordinal: 1, offset: 8, size: 4, ..Param::default() },
        ],
        shared: Some(Shared { size: u64::from(shared_base) + 96, align: 16 }),
        stack: Stack { frame: 16, min: Some(24), max: None, call_return: Some(0) },
        launch: Launch { max_threads: Some([128, 1, 1]), max_registers: Some(64), ..Launch::default() },
        sites: Sites {
            exits: vec![64, 240],
            warp_wide: vec![32],
            warp_wide_masks: vec![u32::MAX],
            partly_read: vec![(112, 0xf0)],
            register_map: vec![128, 0x201, u32::MAX],
            syscalls: vec![48],
            indirect_branches: vec![IndirectBranch { offset: 80, targets: vec![96, 112] }],
            ..Sites::default()
        },
        constant2: Some(Image::new(vec![96, 0, 0, 0, 112, 0, 0, 0], 4)),
        externs: vec!["vprintf".into()],
        ..Function::default()
    };
    let second = Function {
        name: "second".into(),
        kernel: true,
        code: vec![0; 128],
        registers: 8,
        param_base,
        stack: Stack { min: Some(0), ..Stack::default() },
        sites: Sites { exits: vec![16], ..Sites::default() },
        ..Function::default()
    };
    let mut constant4 = Image::default();
    constant4.push_address(2, "counter");
    constant4.push_address(2, "vprintf");
    let mut global_init = Image::new(vec![77, 0, 0, 0], 4);
    global_init.push_address(4, "counter");
    let variable = |name: &str, space, offset, size, binding| Variable {
        name: name.into(),
        space,
        offset,
        size,
        binding,
        managed: false,
    };
    Cubin {
        sm,
        ptx_sm: sm,
        toolkit: 130,
        tool: ToolNote { name: "test".into(), version: "1".into(), build: "".into(), options: "-arch sm".into() },
        functions: vec![first, second],
        variables: vec![
            variable("counter", Space::GlobalInit, 0, 4, Binding::Local),
            variable("list", Space::Constant, 0, 16, Binding::Local),
            variable("pointer", Space::GlobalInit, 8, 8, Binding::Global),
            variable("scratch", Space::Global, 0, 32, Binding::Weak),
        ],
        global: Some(Image { size: 32, align: 8, ..Image::default() }),
        global_init: Some(global_init),
        constant3: Some(Image::new((0..16).collect(), 4)),
        constant4: Some(constant4),
        call_graph: vec![CallRow::Direct { caller: "first".into(), callee: "vprintf".into() }],
        independent_textures: true,
        asks_kind: true,
        ..Cubin::default()
    }
}

/// Standard output of a tool; a failure gives the tool's own message.
pub fn run(tool: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new(tool).args(args).output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The cubin of ptxas for a kernel and target, with extra options, from the build folder if a test
/// asked for it before. Behind the target may stand what `.target` lists besides.
pub fn compile(ptxas: &Path, body: &str, target: &str, options: &[&str]) -> Result<Vec<u8>, String> {
    let text = format!(".version 9.0\n.target sm_{target}\n.address_size 64\n{body}");
    let arch = format!("-arch=sm_{}", target.split(',').next().unwrap_or_default());
    let answer = crate::ptxas::ask(ptxas, text.as_bytes(), &[&[arch.as_str()], options].concat());
    answer.cubin.ok_or(answer.said)
}

/// A tool's output about a cubin, with the file name replaced by `FILE`. Several tests ask about
/// the same bytes; the first one runs the tool.
pub fn show(tool: &Path, args: &[&str], cubin: &[u8]) -> Result<String, String> {
    type Asked = (PathBuf, Vec<String>, Vec<u8>);
    type Shown = Arc<OnceLock<Result<String, String>>>;
    static ALL: OnceLock<Mutex<HashMap<Asked, Shown>>> = OnceLock::new();
    let key = (tool.to_path_buf(), args.iter().map(|arg| arg.to_string()).collect(), cubin.to_vec());
    let cell = ALL.get_or_init(Mutex::default).lock().expect("no panic").entry(key).or_default().clone();
    cell.get_or_init(|| shown(tool, args, cubin)).clone()
}

fn shown(tool: &Path, args: &[&str], cubin: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("a.cubin");
    std::fs::write(&path, cubin).map_err(|e| e.to_string())?;
    let path = path.to_str().unwrap_or_default();
    let mut all = args.to_vec();
    all.push(path);
    let text = run(tool, &all).map_err(|e| e.replace(path, "FILE"))?;
    Ok(text.replace(path, "FILE"))
}

/// SM number of a target name, and whether it is an accelerator target.
pub fn sm(target: &str) -> (u32, bool) {
    let digits = target.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    (digits.parse().unwrap_or_default(), target.ends_with('a'))
}

/// Runs a check over all jobs on two threads; the failures, sorted.
pub fn failures<J: Sync + Send + Copy>(jobs: Vec<J>, check: impl Fn(J) -> Result<(), String> + Sync) -> Vec<String> {
    let half = jobs.len().div_ceil(2).max(1);
    let part = |jobs: &[J]| jobs.iter().filter_map(|job| check(*job).err()).collect::<Vec<_>>();
    let mut wrong: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = jobs.chunks(half).map(|jobs| scope.spawn(|| part(jobs))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|_| vec!["a check panicked".into()])).collect()
    });
    wrong.sort();
    wrong
}
