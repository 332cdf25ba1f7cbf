//! What huge inputs cost the program: one run at a time, with its status, CPU time and memory.

// The test and the bench use different parts of it.
#![allow(dead_code)]

pub mod inputs;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bytes that the program may take besides the share of its input, and for each byte of it.
const BASE: u64 = 200_000_000;
const PER_BYTE: u64 = 20;

/// What one run cost.
pub struct Cost {
    /// Bytes of the input.
    pub input: u64,
    /// Exit status; negative for a signal.
    pub status: i32,
    /// Seconds of CPU.
    pub cpu: f64,
    /// Bytes of memory at the most.
    pub memory: u64,
    /// Bytes of the cubin, where there is one.
    pub output: Option<u64>,
    /// What was said.
    pub said: String,
    /// Files left in the folder besides the input, the cubin and what was said.
    pub left: usize,
}

impl Cost {
    /// Most memory that this input may take; a build that checks itself after every phase takes more.
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

/// Runs the program with these words, whose last is the input's path; `cubin` is where it writes to, if anywhere.
// It is waited for by the call that tells what it cost.
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
    // SAFETY: the process is our child, which nobody else waits for, and both pointers are to what the call fills in.
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
