//! The vendor's disassembler as judge of the encoding tables.
//!
//! For each form of each opcode, 50 words with random legal fields, 200 with `SASSAFRAS_ORACLE=all`: what we print is what it
//! prints. (The words of whole cubins are the matter of `oracle_text` and `oracle_words`.)

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
    let samples = if std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all") { 200 } else { 50 };
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for sm in TARGETS {
        let target = Target::by_name(&format!("sm_{sm}")).expect("a target of the tables");
        let mut random = words::Random::new(0x5a55 + sm.len() as u64);
        let mut batch = Vec::new();
        for (i, form) in FORMS.iter().enumerate().filter(|(_, f)| f.is_on(target) && !f.alias) {
            if only.is_empty() || form.op.name() == only {
                batch.extend((0..samples).map(|_| (i, words::random_word(form, target, &mut random))));
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
        println!("{key}: {} of {samples}, first {}", list.len(), list[0]);
    }
    assert!(wrong.is_empty(), "{} forms print otherwise", wrong.len());
}
