//! What ptxas makes of a text, kept in the build folder by what it was asked.
//!
//! Several judges ask for the cubins of the same files: the first one that asks runs ptxas, the
//! others read what it said and made. A file is named by the hash of the text, the options and the
//! program, and appears under its name when it is whole, so that judges of other processes may ask
//! for it at the same time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run of ptxas gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The cubin, where it made one.
    pub cubin: Option<Vec<u8>>,
    /// What it said on standard error, in which the text is called `k.ptx`.
    pub said: String,
}

/// Where an answer is kept.
fn place(program: &Path, text: &[u8], options: &[&str]) -> PathBuf {
    let about = std::fs::metadata(program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut hasher = DefaultHasher::new();
    (text, options, about.len(), about.modified().ok()).hash(&mut hasher);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("ptxas").join(format!("{:016x}", hasher.finish()))
}

/// The length of what was said, that, whether there is a cubin, and the cubin.
fn packed(answer: &Answer) -> Vec<u8> {
    let said = answer.said.as_bytes();
    let cubin = answer.cubin.as_ref();
    [&(said.len() as u64).to_le_bytes()[..], said, &[u8::from(cubin.is_some())], cubin.map_or(&[][..], |c| c)].concat()
}

fn unpacked(bytes: &[u8]) -> Option<Answer> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let (said, rest) = rest.split_at_checked(u64::from_le_bytes(*length) as usize)?;
    let (made, cubin) = rest.split_first()?;
    Some(Answer { cubin: (*made == 1).then(|| cubin.to_vec()), said: String::from_utf8_lossy(said).into_owned() })
}

/// What a ptxas says and makes of a text with options.
pub fn run(program: &Path, text: &[u8], options: &[&str]) -> Answer {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("k.ptx"), text).expect("the text written");
    let mut command = Command::new(program);
    let output = command.args(options).args(["k.ptx", "-o", "k.cubin"]).current_dir(folder.path()).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let cubin = output.status.success().then(|| std::fs::read(folder.path().join("k.cubin")).expect("a cubin"));
    Answer { cubin, said: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// The same, from the build folder if it was asked before.
pub fn ask(program: &Path, text: &[u8], options: &[&str]) -> Answer {
    let place = place(program, text, options);
    if let Some(answer) = std::fs::read(&place).ok().and_then(|bytes| unpacked(&bytes)) {
        return answer;
    }
    let answer = run(program, text, options);
    let folder = place.parent().expect("a folder");
    let keep = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&packed(&answer))?;
        file.persist(&place).map(drop).map_err(|e| e.error)
    };
    keep().unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    answer
}

/// The cubin of a target (as in `90`) at a level, or what ptxas said.
pub fn cubin(program: &Path, text: &[u8], sm: &str, level: &str) -> Result<Vec<u8>, String> {
    let answer = ask(program, text, &[&format!("-arch=sm_{sm}"), level]);
    answer.cubin.ok_or(answer.said)
}
