//! The disassembler, behind a trait so that tests can answer from recorded text.
//!
//! Each 128-bit word gives its text at address 0, or `None` if it is illegal, independently of the
//! other words of the batch.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Turns words into text.
pub trait Disassembler {
    /// One text per word, without guard padding and semicolon; `None` for an illegal word.
    fn texts(&mut self, words: &[u128]) -> Result<Vec<Option<String>>, String>;
    /// Name and version, for the column `src`.
    fn version(&self) -> String;
}

/// A word that replaces illegal ones; legal on every generation.
const NOP: u128 = 0x000fc00000000000_0000000000007918;

/// nvdisasm on raw words.
pub struct NvDisasm {
    tool: PathBuf,
    sm: String,
    version: String,
}

static FILES: AtomicU32 = AtomicU32::new(0);

impl NvDisasm {
    /// `sm` has the form `90a`. Fails if the tool does not run.
    pub fn new(tool: &Path, sm: &str) -> Result<NvDisasm, String> {
        let output = Command::new(tool).arg("--version").output().map_err(|e| format!("{}: {e}", tool.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.split_whitespace().rev().find_map(|w| w.strip_prefix('V')).unwrap_or("of unknown version");
        Ok(NvDisasm { tool: tool.into(), sm: sm.into(), version: version.into() })
    }

    fn run(&self, words: &[u128]) -> Result<Output, String> {
        let name = format!("codegen-learn-{}-{}.bin", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let written = std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()));
        let output = written.and_then(|()| {
            let arch = format!("SM{}", self.sm);
            let call = Command::new(&self.tool).args(["-b", &arch, "-hex", "-ndf"]).arg(&path).output();
            call.map_err(|e| format!("{}: {e}", self.tool.display()))
        });
        let _ = std::fs::remove_file(&path);
        output
    }

    /// The texts at their positions in the batch, which follows `lead` words.
    fn placed(&self, words: &[u128], lead: usize) -> Result<Vec<Option<String>>, String> {
        let mut batch = vec![NOP; lead];
        batch.extend(words);
        let mut illegal = BTreeSet::new();
        loop {
            let output = self.run(&batch)?;
            let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() {
                let mut list = lines(&String::from_utf8_lossy(&output.stdout), batch.len());
                illegal.iter().for_each(|i: &usize| list[*i] = None);
                list.drain(..lead);
                return Ok(list);
            }
            let before = illegal.len();
            let count = batch.len();
            for index in addresses(&complaints).filter(|i| *i < count) {
                batch[index] = NOP;
                illegal.insert(index);
            }
            if illegal.len() > before {
                continue;
            }
            if words.len() <= 1 {
                // An error without an address concerns this word, unless even a NOP fails.
                return if self.run(&[NOP])?.status.success() { Ok(vec![None; words.len()]) } else { Err(complaints) };
            }
            let (front, back) = words.split_at(words.len() / 2);
            let mut list = self.placed(front, lead)?;
            list.extend(self.placed(back, lead + front.len())?);
            return Ok(list);
        }
    }
}

impl Disassembler for NvDisasm {
    /// Runs everything twice, the second time shifted by one word: a number that changes with the
    /// shift is an address.
    fn texts(&mut self, words: &[u128]) -> Result<Vec<Option<String>>, String> {
        let (first, second) = (self.placed(words, 0)?, self.placed(words, 1)?);
        Ok(first.into_iter().zip(second).enumerate().map(|(i, (a, b))| at_zero(a?, b?, i as i128 * 16)).collect())
    }

    fn version(&self) -> String {
        format!("nvdisasm {}", self.version)
    }
}

/// Word indices of the errors on stderr.
pub fn addresses(stderr: &str) -> impl Iterator<Item = usize> {
    stderr.lines().filter_map(|line| {
        let digits = line.split_once("at address 0x")?.1;
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        usize::from_str_radix(&digits[..end], 16).ok().map(|a| a / 16)
    })
}

/// Instruction texts of a listing with `-hex`, by word index.
pub fn lines(listing: &str, count: usize) -> Vec<Option<String>> {
    let mut list = vec![None; count];
    for line in listing.lines() {
        let Some((address, rest)) = line.trim_start().strip_prefix("/*").and_then(|l| l.split_once("*/")) else {
            continue;
        };
        let (Ok(address), Some((text, _))) = (usize::from_str_radix(address, 16), rest.rsplit_once("/*")) else {
            continue;
        };
        let text = text.trim().trim_end_matches(';').trim();
        if let Some(slot) = list.get_mut(address / 16).filter(|_| !text.is_empty()) {
            *slot = Some(text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    list
}

/// The text of a word at address 0, derived from its texts at `address` and 16 bytes further on.
pub fn at_zero(first: String, second: String, address: i128) -> Option<String> {
    if first == second {
        return Some(first);
    }
    let words = first.split(' ').zip(second.split(' ')).map(|(a, b)| {
        let bare = |w: &str| w.trim_end_matches([',', ')', ']']).to_string();
        match (hex(&bare(a)), hex(&bare(b))) {
            (Some(x), Some(y)) if y - x == 16 => format!("{}{}", signed(x - address), &a[bare(a).len()..]),
            _ => a.to_string(),
        }
    });
    Some(words.collect::<Vec<_>>().join(" "))
}

fn hex(text: &str) -> Option<i128> {
    let (minus, body) = text.strip_prefix('-').map_or((false, text), |b| (true, b));
    let value = i128::from_str_radix(body.strip_prefix("0x")?, 16).ok()?;
    Some(if minus { -value } else { value })
}

fn signed(value: i128) -> String {
    if value < 0 { format!("-{:#x}", -value) } else { format!("{value:#x}") }
}
