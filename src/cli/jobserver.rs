//! The jobserver of GNU make: a pipe with one byte for each job that may run beside those that do.
//!
//! A program that make has started may use one thread; for each more it takes a byte, and puts it
//! back when that thread is done. Source: the GNU make manual, "POSIX Jobserver Interaction".

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;

/// Bytes taken from the jobserver, which go back when this is dropped.
#[derive(Debug, Default)]
pub struct Tokens {
    taken: Vec<u8>,
    back: Option<File>,
}

impl Tokens {
    /// Takes what is there now, at most so many bytes. Without a jobserver, or one that has none
    /// left, that is none.
    pub fn take(flags: &str, most: usize) -> Tokens {
        let Some([from, to]) = pipes(flags).filter(|_| most > 0) else { return Tokens::default() };
        let (Some(mut from), Ok(to)) = (unblocked(&from), OpenOptions::new().write(true).open(to)) else {
            return Tokens::default();
        };
        let mut taken = vec![0; most];
        let count = from.read(&mut taken).unwrap_or(0);
        taken.truncate(count);
        Tokens { taken, back: Some(to) }
    }

    /// How many were taken.
    pub fn count(&self) -> usize {
        self.taken.len()
    }
}

impl Drop for Tokens {
    fn drop(&mut self) {
        if let Some(back) = &mut self.back {
            // Nobody could be told that make has closed its pipe.
            let _ = back.write_all(&self.taken);
        }
    }
}

/// Where bytes are read and where they are written, as `MAKEFLAGS` says: a named pipe, or the
/// numbers of two open files.
fn pipes(flags: &str) -> Option<[PathBuf; 2]> {
    let option = |word: &'_ str| {
        let names = ["--jobserver-auth=", "--jobserver-fds="];
        names.iter().find_map(|name| word.strip_prefix(name)).map(str::to_string)
    };
    let last = flags.split_whitespace().filter_map(option).next_back()?;
    if let Some(path) = last.strip_prefix("fifo:") {
        return Some([PathBuf::from(path), PathBuf::from(path)]);
    }
    let (from, to) = last.split_once(',')?;
    let open = |number: &str| number.parse::<u32>().ok().map(|number| PathBuf::from(format!("/proc/self/fd/{number}")));
    Some([open(from)?, open(to)?])
}

/// Opens a pipe so that reading it does not wait. `None` if it is none.
#[cfg(target_os = "linux")]
fn unblocked(path: &PathBuf) -> Option<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    /// The same number on every target of Linux that Rust has but MIPS and SPARC.
    const O_NONBLOCK: i32 = 0o4000;
    let is_pipe = std::fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo());
    let open = || OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path).ok();
    is_pipe.then(open).flatten()
}

/// Elsewhere no byte is taken.
#[cfg(not(target_os = "linux"))]
fn unblocked(_: &PathBuf) -> Option<File> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_and_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let flags = format!("w -j3 --jobserver-auth=7,8 --jobserver-auth=fifo:{}", path.display());
        pipe.write_all(b"ab").unwrap();
        let tokens = Tokens::take(&flags, 5);
        assert_eq!(tokens.count(), 2);
        assert_eq!(Tokens::take(&flags, 5).count(), 0, "nothing is left, and nobody waits");
        drop(tokens);
        assert_eq!(Tokens::take(&flags, 1).count(), 1);
        let mut bytes = [0; 2];
        pipe.read_exact(&mut bytes).unwrap();
        crate::sorted::sort(&mut bytes);
        assert_eq!(&bytes, b"ab", "the same bytes are back");
    }

    #[test]
    fn without_a_jobserver_there_are_none() {
        for flags in ["", "-j3", "--jobserver-auth=-2,-2", "--jobserver-auth=fifo:/nowhere", "--jobserver-fds=3"] {
            assert_eq!(Tokens::take(flags, 5).count(), 0, "{flags}");
        }
        assert_eq!(pipes("--jobserver-fds=3,4"), Some(["/proc/self/fd/3".into(), "/proc/self/fd/4".into()]));
    }
}
