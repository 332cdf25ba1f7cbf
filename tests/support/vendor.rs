//! The vendor's tools in `target/vendor`, run as a user runs them.
//!
//! Input: words or files. Output: what the disassembler prints. Every caller skips with a message where they are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tool's path, if it is there.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor").join(name);
    path.exists().then_some(path)
}

/// What ptxas makes of a file for a target (`sm_90`) with a level (`-O3`), whatever target the file names; `None` where it
/// refuses it.
fn assemble(ptx: &Path, target: &str, level: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let text = std::fs::read_to_string(ptx).ok()?;
    let retarget = |line: &str| match line.split_whitespace().next() {
        Some(".target") => format!(".target {target}"),
        Some(".version") => ".version 9.0".to_string(),
        _ => line.to_string(),
    };
    let text = text.lines().map(retarget).collect::<Vec<_>>().join("\n") + "\n";
    let stem = format!("{}-{target}{level}", ptx.file_stem()?.to_string_lossy());
    let (source, cubin) = (folder.join(format!("{stem}.ptx")), folder.join(format!("{stem}.cubin")));
    std::fs::write(&source, text).ok()?;
    let arch = format!("-arch={target}");
    let run = Command::new(tool("ptxas")?).args([&arch, level]).arg(&source).arg("-o").arg(&cubin).output().ok()?;
    run.status.success().then_some(cubin)
}

/// A word of a cubin with the disassembler's text of it.
pub struct Word {
    /// Bytes from the start of its section.
    pub at: u64,
    pub word: u128,
    pub text: String,
}

/// Words of every code section with the addresses of the labels in it.
pub type Section = (Vec<Word>, BTreeMap<String, u64>);

/// The listing of what ptxas makes of a file; `None` where it refuses it. The vendor's answer is kept beside the test's
/// temporary files and asked for again only when the file has changed.
pub fn listing_of(ptx: &Path, target: &str, level: &str) -> Option<Vec<Section>> {
    let mut hash = std::hash::DefaultHasher::new();
    std::fs::read(ptx).ok()?.hash(&mut hash);
    let stem = format!("{}-{target}{level}-{:016x}.sass", ptx.file_stem()?.to_string_lossy(), hash.finish());
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(stem);
    if let Ok(output) = std::fs::read_to_string(&kept) {
        return Some(sections(&output));
    }
    let cubin = assemble(ptx, target, level)?;
    let run = Command::new(tool("nvdisasm")?).args(["-hex", "-ndf"]).arg(&cubin).output().ok()?;
    let output = String::from_utf8_lossy(&run.stdout).into_owned();
    let _ = std::fs::remove_file(cubin);
    if run.status.success() {
        let _ = std::fs::write(kept, &output);
    }
    Some(sections(&output))
}

/// What nvdisasm prints of a cubin.
fn sections(output: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut waiting: Vec<String> = Vec::new();
    let mut low: Option<(u64, u64, String)> = None;
    for text in output.lines() {
        if text.starts_with("//---") {
            sections.push(Section::default());
            waiting.clear();
        }
        let Some((words, labels)) = sections.last_mut() else { continue };
        let trimmed = text.trim();
        if let Some(name) = trimmed.strip_suffix(':').filter(|n| !n.contains(' ')) {
            waiting.push(name.to_string());
        } else if let Some(found) = line(text) {
            labels.extend(waiting.drain(..).map(|name| (name, found.0)));
            low = Some(found);
        } else if let Some(high) =
            trimmed.strip_prefix("/* 0x").and_then(|t| u64::from_str_radix(t.get(..16)?, 16).ok())
            && let Some((at, low, text)) = low.take()
        {
            words.push(Word { at, word: u128::from(high) << 64 | u128::from(low), text });
        }
    }
    sections.retain(|s| !s.0.is_empty());
    sections
}

/// A word that every target accepts (NOP), to stand in for one that was refused.
const NOP: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;

/// Texts of words in the raw mode of nvdisasm; `None` for a word that it refuses. `sm` as in `90`.
pub fn disassemble(words: &[u128], sm: &str) -> Vec<Option<String>> {
    let Some(nvdisasm) = tool("nvdisasm") else { return vec![None; words.len()] };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("raw.bin");
    let mut list = words.to_vec();
    let mut refused = BTreeSet::new();
    for _ in 0..40 {
        let bytes: Vec<u8> = list.iter().flat_map(|w| w.to_le_bytes()).collect();
        std::fs::write(&path, bytes).expect("the words written");
        let run = Command::new(&nvdisasm).args(["-b", &format!("SM{sm}"), "-hex", "-ndf"]).arg(&path).output();
        let run = run.expect("nvdisasm runs");
        if run.status.success() && !run.stdout.is_empty() {
            return texts(&String::from_utf8_lossy(&run.stdout), words.len(), &refused);
        }
        let errors = String::from_utf8_lossy(&run.stderr).into_owned();
        let bad: Vec<usize> = errors.split("at address 0x").skip(1).filter_map(address).map(|a| a / 16).collect();
        let before = refused.len();
        for i in bad.into_iter().filter(|i| *i < words.len()) {
            refused.insert(i);
            list[i] = NOP;
        }
        assert!(refused.len() > before, "nvdisasm -b SM{sm}: {errors}");
    }
    panic!("nvdisasm -b SM{sm} refuses words again and again");
}

fn address(text: &str) -> Option<usize> {
    let digits: String = text.chars().take_while(char::is_ascii_hexdigit).collect();
    usize::from_str_radix(&digits, 16).ok()
}

fn texts(output: &str, count: usize, refused: &BTreeSet<usize>) -> Vec<Option<String>> {
    let mut list = vec![None; count];
    for (at, _, text) in output.lines().filter_map(line) {
        let i = at as usize / 16;
        if i < count && !refused.contains(&i) {
            list[i] = Some(text);
        }
    }
    list
}

/// A line of `nvdisasm -hex`: address, low half of the word, text without the semicolon, blanks single.
pub fn line(line: &str) -> Option<(u64, u64, String)> {
    let rest = line.trim_start().strip_prefix("/*")?;
    let (at, rest) = rest.split_once("*/")?;
    let (text, rest) = rest.rsplit_once("/* 0x")?;
    let low = u64::from_str_radix(rest.split_once(' ')?.0, 16).ok()?;
    let at = u64::from_str_radix(at, 16).ok()?;
    Some((at, low, normal(text.trim().trim_end_matches(';'))))
}

/// Blanks single, none between the brackets of a constant.
pub fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("] [", "][").replace(" ,", ",")
}
