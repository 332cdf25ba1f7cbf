//! The vendor's disassembler as judge of the encoding tables.
//!
//! For each form of each opcode, words with random legal fields: what we print is what it prints. And for every word of
//! the incumbent's cubins of our kernels: it decodes, prints the same, and its text with its control field assembles to it.

#[path = "support/vendor.rs"]
mod vendor;
#[path = "support/words.rs"]
mod words;

use sassafras::sass;
use sassafras::tables::Target;
use sassafras::tables::encoding::FORMS;
use std::collections::BTreeMap;

/// One target per generation and set of features that forms ask for.
const TARGETS: [&str; 7] = ["75", "80", "90", "100", "110", "120", "121"];

#[test]
fn random_words_print_as_the_vendor_prints_them() {
    if vendor::tool("nvdisasm").is_none() {
        println!("skipped: no target/vendor/nvdisasm");
        return;
    }
    let only = std::env::var("ONLY_OP").unwrap_or_default();
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for sm in TARGETS {
        let target = Target::by_name(&format!("sm_{sm}")).expect("a target of the tables");
        let mut random = words::Random::new(0x5a55 + sm.len() as u64);
        let mut batch = Vec::new();
        for (i, form) in FORMS.iter().enumerate().filter(|(_, f)| f.is_on(target) && !f.alias) {
            if only.is_empty() || form.op.name() == only {
                batch.extend((0..50).map(|_| (i, words::random_word(form, target, &mut random))));
            }
        }
        let list: Vec<u128> = batch.iter().map(|b| b.1).collect();
        for (n, ((i, word), theirs)) in batch.iter().zip(vendor::disassemble(&list, sm)).enumerate() {
            let form = &FORMS[*i];
            let ours = match sass::decode(target, *word) {
                Ok(inst) => vendor::normal(&sass::text(target, &inst, n as u64 * 16, None)),
                Err(error) => format!("({error})"),
            };
            let theirs = theirs.unwrap_or_else(|| "(refused)".into());
            if ours != theirs {
                let key = format!("sm_{sm} {} {:#05x} form {i}", form.op.name(), form.fixed.1 & 0xfff);
                wrong.entry(key).or_default().push(format!("{word:032x}\n     ours   {ours}\n     theirs {theirs}"));
            }
        }
    }
    for (key, list) in &wrong {
        println!("{key}: {} of 50, first {}", list.len(), list[0]);
    }
    assert!(wrong.is_empty(), "{} forms print otherwise", wrong.len());
}

/// Targets for which the incumbent assembles our kernels.
const KERNEL_TARGETS: [&str; 10] = ["75", "80", "86", "89", "90", "100", "103", "110", "120", "121"];

#[test]
fn words_of_the_incumbents_cubins_come_back() {
    if vendor::tool("nvdisasm").is_none() || vendor::tool("ptxas").is_none() {
        println!("skipped: no target/vendor/ptxas or nvdisasm");
        return;
    }
    let mut kernels = Vec::new();
    for folder in ["tests/cases/exec", "tests/corpus"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let files = std::fs::read_dir(folder).expect("the kernels").flatten().map(|e| e.path());
        kernels.extend(files.filter(|p| p.extension().is_some_and(|e| e == "ptx")));
    }
    kernels.sort();
    let allowed = std::fs::read_to_string("tests/oracle/not_yet.txt").unwrap_or_default();
    let allowed: Vec<&str> = allowed.lines().filter(|l| !l.starts_with('#')).map(str::trim).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new(Found::default());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(sm) = KERNEL_TARGETS.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    judge(sm, &kernels, &found);
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no thread has panicked");
    found.wrong.retain(|mnemonic, _| !allowed.contains(&mnemonic.split('.').next().unwrap_or("")));
    println!("{} words", found.words);
    for (mnemonic, (count, note)) in &found.wrong {
        println!("{mnemonic}: {count}, first {note}");
    }
    assert!(found.words > 100_000, "only {} words", found.words);
    assert!(found.wrong.is_empty(), "{} mnemonics do not come back", found.wrong.len());
}

#[derive(Default)]
struct Found {
    words: usize,
    /// By mnemonic: how many, and the first.
    wrong: BTreeMap<String, (usize, String)>,
}

/// Every word of every kernel for one target.
fn judge(sm: &str, kernels: &[std::path::PathBuf], found: &std::sync::Mutex<Found>) {
    let name = format!("sm_{sm}");
    let target = Target::by_name(&name).expect("a target of the tables");
    for (kernel, level) in kernels.iter().flat_map(|k| [(k, "-O0"), (k, "-O3")]) {
        let Some(sections) = vendor::listing_of(kernel, &name, level) else {
            println!("ptxas refuses {} for {name}", kernel.display());
            continue;
        };
        let mut found = found.lock().expect("no thread has panicked");
        for (section, labels) in sections {
            found.words += section.len();
            for word in section {
                let Err(why) = comes_back(target, &word, &labels) else { continue };
                let unguarded =
                    word.text.strip_prefix('@').and_then(|t| t.split_once(' ')).map_or(&*word.text, |t| t.1);
                let mnemonic = unguarded.split(' ').next().unwrap_or("").to_string();
                let note = format!("{name} {level} {} {:032x}\n     {why}", kernel.display(), word.word);
                found.wrong.entry(mnemonic).or_insert((0, note)).0 += 1;
            }
        }
    }
}

/// Whether a word decodes, prints as given and assembles from its text again.
fn comes_back(target: &Target, word: &vendor::Word, labels: &BTreeMap<String, u64>) -> Result<(), String> {
    let inst = sass::decode(target, word.word).map_err(|e| e.to_string())?;
    let label = word.text.split_once("`(").and_then(|(_, rest)| rest.split_once(')')).map(|(name, _)| name.to_string());
    let named = |to: u64| label.clone().filter(|name| labels.get(name) == Some(&to));
    let ours = vendor::normal(&sass::text(target, &inst, word.at, Some(&named)));
    if ours != word.text {
        return Err(format!("ours   {ours}\n     theirs {}", word.text));
    }
    let line = format!("{}{}", word.text, sass::hidden(target, &inst));
    let parsed =
        sass::parse(target, &line, word.at, Some(&|name| labels.get(name).copied())).map_err(|e| e.to_string())?;
    let again = sass::encode(target, &sass::Inst { ctrl: inst.ctrl, ..parsed }).map_err(|e| e.to_string())?;
    if again != word.word {
        return Err(format!("{} assembles to {again:032x}", word.text));
    }
    Ok(())
}
