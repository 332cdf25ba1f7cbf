//! The tools that programs go through, and their temporary folders.

use crate::source::{Kind, Source};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limits of a compiler, and of a program on this host.
const COMPILING: Duration = Duration::from_secs(60);
const RUNNING: Duration = Duration::from_secs(3);

/// The tools that are installed.
pub struct Tools {
    pub clang: PathBuf,
    pub csmith: Option<PathBuf>,
    pub ptxas: Option<PathBuf>,
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
        let (csmith, ptxas) = (found("csmith"), Some(root().join("target/vendor/ptxas")).filter(|p| p.exists()));
        told("csmith", &csmith);
        told("target/vendor/ptxas", &ptxas);
        Some(Tools { clang: clang?, csmith, ptxas })
    }

    /// The values that the program prints on this host. Fails if it cannot be built or takes too
    /// long.
    pub fn native(&self, kind: Kind, source: &Source, folder: &Path) -> Result<Vec<u32>, String> {
        let (text, program) = (folder.join("native.c"), folder.join("native"));
        std::fs::write(&text, &source.native).map_err(|e| e.to_string())?;
        let mut command = self.clang(kind);
        command.arg("-O1").arg(text).arg("-o").arg(&program);
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
        entry.contains(".entry kern(").then_some(entry).ok_or("it has no kernel".into())
    }

    fn clang(&self, kind: Kind) -> Command {
        let mut command = Command::new(&self.clang);
        command.args(["-w", "-ffreestanding", "-fno-crash-diagnostics"]).args(kind.language());
        command.arg("-I").arg(root().join("tests/programs_c"));
        command
    }

    /// The cubin of ptxas.
    pub fn theirs(&self, ptx: &str, target: &str, level: u8, folder: &Path) -> Result<Option<Vec<u8>>, String> {
        let Some(ptxas) = &self.ptxas else { return Ok(None) };
        let (from, to) = (folder.join("theirs.ptx"), folder.join("theirs.cubin"));
        std::fs::write(&from, ptx).map_err(|e| e.to_string())?;
        let mut command = Command::new(ptxas);
        command.args(["-arch", target, &format!("-O{level}")]).arg(&from).arg("-o").arg(&to);
        finished(&mut command, COMPILING)?;
        std::fs::read(&to).map(Some).map_err(|e| e.to_string())
    }
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
                return Err(format!("{name} takes too long"));
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
