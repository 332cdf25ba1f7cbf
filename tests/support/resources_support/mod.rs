//! Measures one run of the program on a huge input: status, CPU time and memory.

// The test and the bench use different parts of it.
#![allow(dead_code)]

pub mod inputs;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Memory limit of the program: a fixed part, and bytes per byte of input.
const BASE: u64 = 200_000_000;
const PER_BYTE: u64 = 20;

/// The measurements of one run.
pub struct Cost {
    /// Bytes of the input.
    pub input: u64,
    /// Exit status; negative for a signal.
    pub status: i32,
    /// Seconds of CPU.
    pub cpu: f64,
    /// Peak memory in bytes.
    pub memory: u64,
    /// Size of the cubin in bytes, if there is one.
    pub output: Option<u64>,
    /// The messages.
    pub said: String,
    /// Files left in the folder besides the input, the cubin and the messages.
    pub left: usize,
}

impl Cost {
    /// Memory limit for this input; a build that verifies itself after every phase may use more.
    pub fn most_memory(&self) -> u64 {
        let checked = if cfg!(debug_assertions) { 4 } else { 1 };
        checked * (BASE + PER_BYTE * self.input)
    }
}

/// Writes an input of this kind and size into a folder.
pub fn input(kind: &inputs::Kind, size: usize, folder: &Path) -> PathBuf {
    let path = folder.join(format!("{}.ptx", kind.name));
    let mut file = BufWriter::new(std::fs::File::create(&path).unwrap());
    (kind.write)(&mut file, size).unwrap();
    file.flush().unwrap();
    path
}

/// Runs the program with these words, the last of which is the input's path; `cubin` is the output
/// path, if any.
// The call that returns the resource usage waits for the child.
#[allow(clippy::zombie_processes)]
pub fn run(program: &Path, words: &[&str], input: &Path, cubin: Option<&Path>, seconds: u64) -> Cost {
    let folder = input.parent().unwrap();
    let (input_bytes, said) = (input.metadata().unwrap().len(), folder.join("said"));
    let before = std::fs::read_dir(folder).unwrap().count();
    let mut command = Command::new(program);
    command.args(words).arg(input);
    if let Some(cubin) = cubin {
        command.arg("-o").arg(cubin);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&said).unwrap());
    // SAFETY: the child calls one function that is safe between fork and exec.
    unsafe {
        use std::os::unix::process::CommandExt;
        command.pre_exec(move || {
            let limit = libc::rlimit { rlim_cur: seconds, rlim_max: seconds };
            if libc::setrlimit(libc::RLIMIT_CPU, &limit) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    let child = command.spawn().unwrap();
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the process is our child, which nobody else waits for, and the call fills in what
    // both pointers refer to.
    let usage = unsafe {
        assert_eq!(libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()), child.id() as i32);
        usage.assume_init()
    };
    let status = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    let output = cubin.and_then(|cubin| Some(cubin.metadata().ok()?.len()));
    let after = std::fs::read_dir(folder).unwrap().count();
    let text = String::from_utf8_lossy(&std::fs::read(&said).unwrap()).into_owned();
    std::fs::remove_file(&said).unwrap();
    Cost {
        input: input_bytes,
        status,
        cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        // Kilobytes.
        memory: usage.ru_maxrss as u64 * 1024,
        output,
        said: text,
        left: after - before - 1 - usize::from(output.is_some()),
    }
}
