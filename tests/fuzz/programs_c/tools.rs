//! The tools that programs go through, and their temporary folders.

use super::source::{Kind, Source};
use sassafras::tables::Target;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limits of a compiler, and of a program on this host.
const COMPILING: Duration = Duration::from_secs(60);
const RUNNING: Duration = Duration::from_secs(3);
/// The end of the message about a tool that was stopped: ptxas takes more than a minute for a few
/// programs of csmith.
pub const LONG: &str = "takes too long";

/// Last version of PTX that `target/vendor/ptxas` knows.
const BEFORE_NEWEST: (u32, u32) = (9, 0);

/// The tools that are installed.
pub struct Tools {
    pub clang: PathBuf,
    pub csmith: Option<PathBuf>,
    pub ptxas: Option<PathBuf>,
    /// The ptxas for targets that the other does not know.
    pub newest: Option<PathBuf>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The path of a program, if it is installed.
fn found(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

impl Tools {
    /// Finds the tools; prints which are missing. `None` without a clang for PTX.
    pub fn find() -> Option<Tools> {
        let told = |what: &str, found: &Option<PathBuf>| {
            if found.is_none() {
                println!("skipped: {what} is missing");
            }
        };
        let clang = found("clang").filter(|clang| {
            let targets = Command::new(clang).arg("--print-targets").output();
            targets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("nvptx64"))
        });
        told("a clang that knows nvptx64", &clang);
        let vendor = |name: &str| Some(root().join("target/vendor").join(name)).filter(|path| path.exists());
        let (csmith, ptxas, newest) = (found("csmith"), vendor("ptxas"), vendor("13.5/ptxas"));
        told("csmith", &csmith);
        told("target/vendor/ptxas", &ptxas);
        told("target/vendor/13.5/ptxas", &newest);
        Some(Tools { clang: clang?, csmith, ptxas, newest })
    }

    /// The values that the program prints on this host. Fails if it cannot be built, takes too
    /// long, or has an access that is not aligned.
    pub fn native(&self, kind: Kind, source: &Source, folder: &Path) -> Result<Vec<u32>, String> {
        let (text, program) = (folder.join("native.c"), folder.join("native"));
        std::fs::write(&text, &source.native).map_err(|e| e.to_string())?;
        let mut command = self.clang(kind);
        // A program with an access that is not aligned ends here: C does not define it, and a GPU
        // faults. csmith takes addresses of members of packed structures.
        command.args(["-O1", "-fsanitize=alignment", "-fsanitize-trap=alignment"]).arg(text).arg("-o").arg(&program);
        finished(&mut command, COMPILING)?;
        let output = finished(&mut Command::new(&program), RUNNING)?;
        let numbers: Option<Vec<u32>> = output.lines().map(|l| u32::from_str_radix(l, 16).ok()).collect();
        numbers.filter(|n| n.len() == kind.threads() as usize).ok_or("it printed something else".into())
    }

    /// The PTX at a level of clang; its kernel is `kern`.
    pub fn ptx(&self, kind: Kind, source: &Source, level: &str, folder: &Path) -> Result<String, String> {
        let (text, ptx) = (folder.join("card.c"), folder.join("card.ptx"));
        std::fs::write(&text, &source.card).map_err(|e| e.to_string())?;
        let mut command = self.clang(kind);
        command.args([
            "--target=nvptx64-nvidia-cuda",
            "-march=sm_75",
            "-Xclang",
            "-target-feature",
            "-Xclang",
            "+ptx70",
        ]);
        command.args(["-S", &format!("-O{level}")]).arg(text).arg("-o").arg(&ptx);
        finished(&mut command, COMPILING)?;
        let text = std::fs::read_to_string(ptx).map_err(|e| e.to_string())?;
        // C cannot declare a kernel.
        let entry = text.replace(".visible .func kern(", ".visible .entry kern(");
        let Some((_, kernel)) = entry.split_once(".entry kern(") else { return Err("it has no kernel".into()) };
        // C does not define a program of which clang knows that it never returns: nothing is left
        // of it.
        if !kernel.split("\n}").next().is_some_and(|body| body.contains("ret;")) {
            return Err("error: clang makes a kernel without an end".into());
        }
        Ok(with_whole_flags(&entry))
    }

    fn clang(&self, kind: Kind) -> Command {
        let mut command = Command::new(&self.clang);
        command.args(["-w", "-ffreestanding", "-fno-crash-diagnostics"]).args(kind.language());
        command.arg("-I").arg(root().join("tests/fuzz/programs_c"));
        command
    }

    /// The cubin of ptxas; `None` if there is none to compare with: at -O0, 13.5 makes code without
    /// a single scoreboard for the targets that it alone has.
    pub fn theirs(&self, ptx: &str, target: &str, level: u8, folder: &Path) -> Result<Option<Vec<u8>>, String> {
        let newest = Target::by_name(target).is_some_and(|t| t.min_ptx > BEFORE_NEWEST);
        let chosen = if newest { self.newest.as_ref().filter(|_| level > 0) } else { self.ptxas.as_ref() };
        let Some(ptxas) = chosen else { return Ok(None) };
        let (from, to) = (folder.join("theirs.ptx"), folder.join("theirs.cubin"));
        std::fs::write(&from, ptx).map_err(|e| e.to_string())?;
        let mut command = Command::new(ptxas);
        command.args(["-arch", target, &format!("-O{level}")]).arg(&from).arg("-o").arg(&to);
        finished(&mut command, COMPILING)?;
        std::fs::read(&to).map(Some).map_err(|e| e.to_string())
    }
}

/// The text with a second byte for each variable of one byte that it reads as two.
///
/// clang makes a flag of a variable that holds only two values, and loads the flag of one byte by
/// `ld.u16`; what it does with the byte behind never matters.
fn with_whole_flags(ptx: &str) -> String {
    let reads = |line: &str| line.trim_start().starts_with("ld") && line.contains(".u16");
    let read: HashSet<&str> = ptx
        .lines()
        .filter(|line| reads(line))
        .filter_map(|line| line.split_once('[')?.1.split_once(']'))
        .map(|(name, _)| name)
        .collect();
    let widened = |line: &str| {
        let (head, name) = line.strip_suffix(';')?.split_once(" .u8 ")?;
        let (name, value) = name.split_once(" = ").unwrap_or((name, "0"));
        let flag = head.starts_with(".global") && read.contains(name);
        flag.then(|| format!("{head} .u8 {name}[2] = {{{value}, 0}};\n"))
    };
    ptx.lines().map(|line| widened(line).unwrap_or_else(|| format!("{line}\n"))).collect()
}

/// The output of a command, which must succeed within the time limit.
fn finished(command: &mut Command, limit: Duration) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let file = |path: &Path| std::fs::File::create(path).map_err(|e| e.to_string());
    command.stdin(Stdio::null()).stdout(file(&out)?).stderr(file(&err)?);
    let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None if start.elapsed() > limit => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} {LONG}"));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let text = |path: &Path| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if status.success() {
        return text(&out).map_err(|e| e.to_string());
    }
    let said = text(&err).unwrap_or_default();
    Err(format!("{name}: {}", said.lines().find(|l| l.contains("error")).or(said.lines().next()).unwrap_or_default()))
}
