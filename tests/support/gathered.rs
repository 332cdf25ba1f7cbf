//! The distinct instruction words of ptxas, cached in `target/oracle_words`.
//!
//! For PTX files and their targets it returns the words per target, all with one control field. A
//! cache file is named by the source, the level and a hash of the PTX text; it is empty if ptxas
//! rejects the source. The newest ptxas compiles for the targets that it alone knows, too, and for
//! these also the files of their relatives, with the target and the version raised.

use super::ptxas;
use sassafras::tables::Target;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A release of ptxas, whose words are gathered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// 13.0.88
    First,
    /// 13.5.37
    Newest,
}

/// Every target whose words are gathered, of each release.
const TARGETS: [&str; 18] = [
    "75", "80", "86", "87", "88", "89", "90", "90a", "100", "100a", "103", "103a", "110", "110a", "120", "120a", "121",
    "121a",
];
const NEWEST: [&str; 7] = ["100f", "103f", "107", "107f", "107a", "120f", "121f"];

/// Files of these targets are compiled for a newer one, too: the target that they name, and which.
const RELATIVES: [(&str, &str); 4] = [("100a", "107a"), ("103a", "107a"), ("100f", "107f"), ("103f", "107f")];

impl Release {
    fn targets(self) -> Vec<&'static str> {
        let more: &[&str] = if self == Release::Newest { &NEWEST } else { &[] };
        TARGETS.iter().chain(more).copied().collect()
    }

    /// A tool of it, if it is installed.
    pub fn tool(self, name: &str) -> Option<PathBuf> {
        match self {
            Release::First => super::vendor::tool(name),
            Release::Newest => super::vendor::tool(&format!("{}/{name}", super::vendor::NEWEST)),
        }
    }

    /// The folder of what is kept of it.
    pub fn folder(self) -> PathBuf {
        let folder = folder();
        if self == Release::Newest { folder.join(super::vendor::NEWEST) } else { folder }
    }
}

/// The control field: stall, yield, scoreboards; the reuse bits above it are kept.
const CONTROL: u128 = ((1 << 17) - 1) << 105;

/// The replacement: stall 2, no scoreboards, and the bit without which nvdisasm does not show
/// reuse.
pub const STANDARD: u128 = 0x000f_e400 << 96 & CONTROL;

/// Folder of the cached words and texts.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/oracle_words")
}

/// FNV-1a.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// A file with its targets and levels.
struct Source {
    name: String,
    text: Vec<u8>,
    jobs: Vec<(String, u8)>,
    /// The target for which `hazards` compiles a file of the corpus, at -O3.
    usual: Option<String>,
}

/// Words by target. Without `all`, each source is compiled for one of its targets, every other one
/// of the corpus as `hazards` has it compiled, and the newest ptxas compiles our own files alone.
pub fn gather(release: Release, all: bool) -> BTreeMap<String, BTreeSet<u128>> {
    let only = std::env::var("SASSAFRAS_CASE").unwrap_or_default();
    let sms = std::env::var("SASSAFRAS_SM").unwrap_or_default();
    let mut words: BTreeMap<String, BTreeSet<u128>> = BTreeMap::new();
    let corpora = all || release == Release::First || !only.is_empty();
    for (i, source) in sources(release, corpora).into_iter().enumerate().filter(|(_, s)| s.name.contains(&only)) {
        let turn = if source.usual.is_some() { i / 2 } else { i } % source.jobs.len().max(1);
        let usual = source.usual.as_ref().filter(|_| i.is_multiple_of(2));
        for (j, (sm, level)) in source.jobs.iter().enumerate() {
            let its_turn = usual.map_or(j == turn, |usual| usual == sm && *level == 3);
            let asked = if sms.is_empty() { all || its_turn } else { sms.split(',').any(|s| s == sm) };
            if asked {
                words.entry(sm.clone()).or_default().extend(compiled(release, &source, sm, *level));
            }
        }
    }
    words
}

fn sources(release: Release, corpora: bool) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Beside the project, or beside the folder of its work trees.
    let places: &[&str] = if corpora { &["../shared/corpus", "../../shared/corpus"] } else { &[] };
    let mut list: Vec<Source> =
        places.iter().map(|place| corpus(release, &root.join(place))).find(|list| !list.is_empty()).unwrap_or_default();
    for place in ["tests/cases/words", "tests/cases/exec", "tests/corpus"] {
        let entries = std::fs::read_dir(root.join(place)).expect("a folder of the tests");
        let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "ptx"));
        paths.sort();
        for path in paths {
            let text = std::fs::read(&path).expect("a PTX file");
            let name = format!("{place}/{}", path.file_stem().unwrap_or_default().to_string_lossy());
            let jobs = jobs(release, &own(&text), &[]);
            list.push(Source { name, text, jobs, usual: None });
        }
    }
    list
}

fn corpus(release: Release, folder: &Path) -> Vec<Source> {
    let Ok(manifest) = std::fs::read_to_string(folder.join("manifest.json")) else { return Vec::new() };
    let manifest: BTreeMap<String, serde_json::Value> = serde_json::from_str(&manifest).expect("a manifest");
    let source = |(i, (name, about)): (usize, (String, serde_json::Value))| {
        let targets = super::manifest::figures(&about).keys();
        let named: Vec<String> = targets.map(|t| t.trim_start_matches("sm_").to_string()).collect();
        let text = std::fs::read(folder.join(&name)).expect("a file of the corpus");
        let own = about["target"].as_str().expect("a target").trim_start_matches("sm_").to_string();
        Source { name, text, jobs: jobs(release, &own, &named), usual: Some(named[i % named.len()].clone()) }
    };
    manifest.into_iter().enumerate().map(source).collect()
}

/// The target that a PTX text names.
fn own(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().find_map(|l| l.trim().strip_prefix(".target")).unwrap_or_default();
    let name = line.trim().split([',', ' ', '/']).next().unwrap_or_default();
    name.trim_start_matches("sm_").to_string()
}

/// Targets and levels of a file: the named ones at -O3, its own at -O0, and all later ones unless
/// it is architecture-specific.
fn jobs(release: Release, own: &str, named: &[String]) -> Vec<(String, u8)> {
    let mut list: BTreeSet<(String, u8)> = named.iter().map(|sm| (sm.clone(), 3)).collect();
    let number = |name: &str| Target::by_name(&format!("sm_{name}")).map_or(0, |t| t.sm);
    for sm in release.targets() {
        match own.ends_with(['a', 'f']) {
            true if own == sm => list.extend([(sm.to_string(), 0), (sm.to_string(), 3)]),
            true if release == Release::Newest && RELATIVES.contains(&(own, sm)) => {
                list.insert((sm.to_string(), 3));
            }
            false if !sm.ends_with(['a', 'f']) && number(sm) >= number(own) => {
                list.insert((sm.to_string(), 3));
                list.extend((number(sm) == number(own)).then(|| (sm.to_string(), 0)));
            }
            _ => {}
        }
    }
    list.into_iter().collect()
}

/// The text of a file for a target: its own, or as a file of a newer relative.
fn raised(text: &[u8], sm: &str) -> Vec<u8> {
    if !RELATIVES.contains(&(own(text).as_str(), sm)) {
        return text.to_vec();
    }
    let line = |line: &str| match line.trim_start() {
        l if l.starts_with(".version") => ".version 9.4".to_string(),
        l if l.starts_with(".target") => format!(".target sm_{sm}"),
        _ => line.to_string(),
    };
    let text = String::from_utf8_lossy(text);
    text.lines().map(line).collect::<Vec<_>>().join("\n").into_bytes()
}

/// The distinct words of a source on a target at a level, from the cache if present.
fn compiled(release: Release, source: &Source, sm: &str, level: u8) -> Vec<u128> {
    let name = format!("{}.O{level}.{:016x}.words", source.name.replace('/', "_"), hash(&source.text));
    let kept = release.folder().join(format!("sm_{sm}")).join(name);
    if let Ok(bytes) = std::fs::read(&kept) {
        return bytes.chunks(16).map(|b| word(b) & !CONTROL | STANDARD).collect();
    }
    let (program, text) = (release.tool("ptxas").expect("ptxas"), raised(&source.text, sm));
    // Other judges ask for these cubins, too; of the rest of the corpora the words are enough.
    let shared = source.usual.as_ref().is_none_or(|usual| usual == sm && level == 3);
    let run = if shared { ptxas::ask } else { ptxas::run };
    let made = |more: &[&str]| {
        let (arch, level) = (format!("-arch=sm_{sm}"), format!("-O{level}"));
        let options = [&[arch.as_str(), level.as_str()][..], more].concat();
        run(&program, &text, &options).cubin
    };
    // Undefined functions are left to the linker.
    let words = made(&[]).or_else(|| made(&["-c"])).map_or(Vec::new(), |cubin| distinct(&cubin));
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    std::fs::create_dir_all(kept.parent().expect("a folder")).expect("a folder for the words");
    let part = kept.with_extension(format!("{}", std::process::id()));
    std::fs::write(&part, bytes).expect("the words kept");
    std::fs::rename(&part, &kept).expect("the words in place");
    words
}

/// The distinct words of the code sections of an ELF file, with the standard control field. (It
/// does not use our reader of cubins, because files that this rejects count, too.)
fn distinct(elf: &[u8]) -> Vec<u128> {
    let number =
        |at: usize, bytes: usize| elf[at..at + bytes].iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b));
    let (table, count, names) = (number(40, 8), number(60, 2), number(62, 2));
    let names = number(table + names * 64 + 24, 8);
    let mut words = BTreeSet::new();
    for at in (0..count).map(|i| table + i * 64) {
        let name = names + number(at, 4);
        if elf[name..].starts_with(b".text") {
            let (offset, size) = (number(at + 24, 8), number(at + 32, 8));
            words.extend(elf[offset..offset + size].chunks(16).map(|b| word(b) & !CONTROL | STANDARD));
        }
    }
    words.into_iter().collect()
}

fn word(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte))
}
