//! Compares the verdicts of the front end and ptxas on every instruction of `forms`: both accept it
//! or both reject it.

use super::forms::{instructions, mistyped};
use super::{kernel, parse};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The path of ptxas, if it is installed.
pub fn ptxas() -> Option<PathBuf> {
    let tool = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
    let found = tool.exists();
    if !found {
        println!("skipped: no ptxas at target/vendor");
    }
    found.then_some(tool)
}

/// Runs ptxas on instructions, one per line from line six on; returns its messages.
fn run(tool: &Path, version: &str, target: &str, lines: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("t.ptx"), folder.path().join("o"));
    // The last line is invalid, so that ptxas compiles nothing. So is line five, since ptxas looks
    // closer at some addresses as long as it has found no error, and each line is to be judged
    // alike.
    let body = lines.join("\n") + "\nno_such_instruction;";
    let first = "L: T: .branchtargets L; add.u32 %r1, %r1, %f1;";
    std::fs::write(&path, kernel(version, target, &format!("{first}\n{body}"))).unwrap();
    let run = Command::new(tool).arg(format!("-arch={target}")).arg(&path).arg("-o").arg(out).output().unwrap();
    String::from_utf8_lossy(&run.stderr).into_owned()
}

/// Number of instructions in one run of ptxas: so few that running again is cheap, and so many that
/// starting it is.
const CHUNK: usize = 10_000;

/// Which instructions ptxas rejects, on two threads.
fn refused(tool: &Path, version: &str, target: &str, lines: &[String]) -> Vec<Option<String>> {
    let part = |lines: &[String]| -> Vec<Option<String>> {
        lines.chunks(CHUNK).flat_map(|some| refused_of_few(tool, version, target, some)).collect()
    };
    let (left, right) = lines.split_at(lines.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| part(right));
        [part(left), other.join().unwrap()].concat()
    })
}

/// The same in one module. ptxas stops at a fatal error, so it runs again without that line.
fn refused_of_few(tool: &Path, version: &str, target: &str, lines: &[String]) -> Vec<Option<String>> {
    let mut out = vec![None; lines.len()];
    let mut left: Vec<usize> = (0..lines.len()).collect();
    loop {
        let texts: Vec<&str> = left.iter().map(|i| lines[*i].as_str()).collect();
        let said = run(tool, version, target, &texts);
        let mut fatal = None;
        let mut whole = false;
        for line in said.lines() {
            let Some((number, message)) = line.split_once(", line ").and_then(|(_, rest)| rest.split_once(';')) else {
                continue;
            };
            let Some(place) = number.parse::<usize>().unwrap().checked_sub(6) else { continue };
            whole |= message.contains("no_such_instruction");
            if message.contains("fatal") {
                fatal = Some((place, message.to_string()));
            } else if message.contains("error") && place < left.len() {
                out[left[place]].get_or_insert(message.to_string());
            }
        }
        match fatal {
            Some((place, message)) => out[left.remove(place)] = Some(message),
            None => {
                assert!(whole, "{said}");
                return out;
            }
        }
    }
}

/// Instructions that ptxas 13.0.88 accepts beyond the manual and this compiler rejects: start and
/// part of the text, and the reason.
const BEYOND: [(&str, &str, &str); 23] = [
    ("cp.async.bulk.cta.", "", "ptxas 13.5.37 refuses a scope without an order"),
    ("cp.async.bulk.cluster.", "", "the same"),
    ("cp.async.bulk.gpu.", "", "the same"),
    ("cp.async.bulk.sys.", "", "the same"),
    ("red.async.release.", "", "the manual has .add alone"),
    ("red.async.relaxed.sys.add", "", "the manual has .release alone in global memory"),
    ("red.async.mmio.release.gpu.add", "", "MMIO is of the system alone, and ptxas drops the operation"),
    ("mov.v", "", "a scalar as the source of a vector move has no stated meaning"),
    ("fma.r", "bf16", "bf16 has only .rn"),
    ("fma.rn.oob.sat.f16", "", "the manual has no .oob with .sat"),
    ("addc.", "16 ", "the carry is defined for 32 and 64 bits"),
    ("subc.", "16 ", "the carry is defined for 32 and 64 bits"),
    ("madc.", "16 ", "the carry is defined for 32 and 64 bits"),
    ("testp.f", "", "a test must be named"),
    (
        "fence.proxy.tensormap::generic.release",
        ".cta",
        "the manual has no state space there, and the scope alone is taken",
    ),
    (
        "fence.proxy.tensormap::generic.release",
        "sync_restrict",
        "the manual has .sync_restrict with .async::generic alone",
    ),
    ("fence.proxy.a", "sync_restrict", "the same, and no state space there"),
    ("red.async.relaxed.gpu.", "", "the manual has no such order without a barrier"),
    ("rcp.rn.ftz.f64", "", ".ftz is for f32 and for the approximation"),
    ("st.async.", "", "the manual has no form without completion, and no scope"),
    ("red.async.relaxed", "add.s64", "the manual has no signed sum of 64 bits"),
    ("tcgen05.mma.", "kind::i8", "the manual divides no sums of integers"),
    ("atom.", "[%rd1], %", "a third operand that is neither a value nor, without .L2::cache_hint, a policy"),
];

/// Which instructions this compiler rejects, with the first message.
pub fn refused_here(version: &str, target: &str, lines: &[String]) -> Vec<Option<String>> {
    let mut out = vec![None; lines.len()];
    for (n, chunk) in lines.chunks(100).enumerate() {
        let body = chunk.join("\n");
        let (_, diags) = parse(&kernel(version, target, &format!("L: T: .branchtargets L;\n{body}")));
        for d in diags {
            // What has no position is a warning about narrow addresses.
            let Some(pos) = d.pos else { continue };
            let line = pos.line as usize - 6;
            out[n * 100 + line].get_or_insert(d.message);
        }
    }
    out
}

/// Operands that ptxas 13.0.88 accepts beyond the manual and this compiler rejects: start and parts
/// of the text, and the reason.
const OPERANDS_BEYOND: [(&str, &[&str], &str); 43] = [
    ("multimem.", &[], "elements of another kind, and bf16 registers are untyped"),
    ("st.async", &[".v4"], "ptxas does not look at the elements of a vector of four"),
    ("cvt.rn.bf16x2.ue8m0x2", &[], "bf16 registers are untyped"),
    ("cvt.r", &["ue8m0x2.bf16x2"], "bf16 registers are untyped"),
    ("", &["[%c1"], "an address has 32 or 64 bits"),
    ("", &["[%h1"], "an address has 32 or 64 bits"),
    ("", &["[%uh1"], "an address has 32 or 64 bits"),
    ("", &["[%sh1"], "an address has 32 or 64 bits"),
    ("tcgen05.ld.", &["{", "%p1"], "a predicate is no word and no address"),
    ("tcgen05.st.", &["{", "%p1"], "a predicate is no word and no address"),
    ("tcgen05.mma.", &["{", "%p1"], "a predicate is no word and no address"),
    ("tcgen05.mma.", &[", 15"], "whether sums are added is a predicate"),
    ("tcgen05.cp.", &["[%"], "an address in tensor memory has 32 bits"),
    ("tcgen05.shift.", &["[%"], "an address in tensor memory has 32 bits"),
    ("tcgen05.", &["[%f1"], "an address in tensor memory is an integer"),
    ("tcgen05.", &["[%fr1"], "an address in tensor memory is an integer"),
    ("fence.proxy.tensormap", &["[%"], "an address has 32 or 64 bits"),
    ("cp.async.bulk.", &["tensor"], "an address has 32 or 64 bits, and coordinates are integers"),
    ("cp.reduce.async.bulk.tensor", &[], "the same"),
    ("st.bulk [", &["r1, 0"], "a size has 64 bits"),
    ("clusterlaunchcontrol.", &["{", "%p1"], "a predicate is no number of a block"),
    ("tex.", &["{"], "elements of another kind"),
    ("tld4.", &["{"], "elements of another kind"),
    ("sured.", &["[%"], "registers wider than the type"),
    ("ld.", &[".v8."], "elements of another kind"),
    ("st.", &[".v8."], "elements of another kind"),
    ("ld.", &[".v4.", "64 ", "%d1"], "elements of another kind"),
    ("st.", &[".v4.", "64 ", "%d1"], "elements of another kind"),
    ("atom.", &["noftz.v2."], "elements of another kind"),
    ("red.", &["noftz.v2."], "elements of another kind"),
    ("mma.", &["{"], "elements of another kind"),
    ("wmma.", &["{"], "elements of another kind"),
    ("ldmatrix.", &["%p1"], "elements of another kind"),
    ("stmatrix.", &["%p1"], "elements of another kind"),
    ("movmatrix.", &["%p1"], "a predicate is no row of a matrix"),
    ("mov.v2.", &[], "a scalar as the source of a vector move has no stated meaning"),
    ("cvt.pack", &[], "registers wider than the type"),
    ("", &[".pred", "%fr1"], "a pair of halves is no predicate"),
    ("mul.wide", &["%fr1"], "a pair of halves is no product"),
    ("mad.wide", &["%fr1"], "a pair of halves is no product"),
    ("set", &["bf16"], "bf16 registers are untyped"),
    ("", &[".f32.bf16", "%uh1"], "bf16 registers are untyped"),
    ("", &[".f32.bf16", "%sh1"], "bf16 registers are untyped"),
];

#[test]
fn operand_types_agree_with_ptxas() {
    let Some(tool) = ptxas() else { return };
    let lines = mistyped();
    let (mut used, mut wrong) = ([false; OPERANDS_BEYOND.len()], Vec::new());
    for target in ["sm_90", "sm_100a"] {
        let theirs = refused(&tool, "9.0", target, &lines);
        let ours = refused_here("9.0", target, &lines);
        println!("{target}: {} instructions, {} refused", lines.len(), theirs.iter().flatten().count());
        for ((line, ours), theirs) in lines.iter().zip(ours).zip(theirs) {
            let matches =
                |start: &str, parts: &[&str]| line.starts_with(start) && parts.iter().all(|p| line.contains(p));
            let beyond = OPERANDS_BEYOND.iter().position(|(start, parts, _)| matches(start, parts));
            if let Some(i) = beyond.filter(|_| ours.is_some() && theirs.is_none()) {
                used[i] = true;
            } else if ours.is_some() != theirs.is_some() {
                wrong.push(format!("{target} {line}   ours: {ours:?}   theirs: {theirs:?}"));
            }
        }
    }
    let shown = if std::env::var("SASSAFRAS_SHOW").is_ok() { wrong.len() } else { wrong.len().min(40) };
    assert!(wrong.is_empty(), "{} verdicts differ:\n{}", wrong.len(), wrong[..shown].join("\n"));
    assert_eq!(used, [true; OPERANDS_BEYOND.len()], "an exception that nothing needs");
}

#[test]
fn forms_agree_with_ptxas() {
    let Some(tool) = ptxas() else { return };
    let lines = instructions();
    let mut used = [false; BEYOND.len()];
    let mut wrong = Vec::new();
    for target in ["sm_75", "sm_80", "sm_90", "sm_100a"] {
        let theirs = refused(&tool, "9.0", target, &lines);
        let ours = refused_here("9.0", target, &lines);
        println!("{target}: {} instructions, {} refused", lines.len(), theirs.iter().flatten().count());
        for ((line, ours), theirs) in lines.iter().zip(ours).zip(theirs) {
            if ours.is_some() == theirs.is_some() {
                continue;
            }
            let beyond = BEYOND.iter().position(|(start, part, _)| line.starts_with(start) && line.contains(part));
            match beyond.filter(|_| theirs.is_none()) {
                Some(i) => used[i] = true,
                None => wrong.push(format!("{target} {line}   ours: {ours:?}   theirs: {theirs:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{} verdicts differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert_eq!(used, [true; BEYOND.len()], "an exception that nothing needs");
}
