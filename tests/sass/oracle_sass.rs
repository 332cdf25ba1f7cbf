//! Checks the encoding tables against nvdisasm.
//!
//! For random legal words of each form of each opcode, our text must equal that of nvdisasm, and
//! decoding and encoding must give the same word. By default one target per set of features and 50
//! words per form; `SASSAFRAS_ORACLE=all` takes every target with an encoder and 200 words.
//! `SASSAFRAS_SEED` changes the words, `SASSAFRAS_OP` selects one opcode. (Words of whole cubins
//! are tested in `oracle_text` and `oracle_words`.)

use crate::vendor;
use crate::words;
use sassafras::sass;
use sassafras::tables::Target;
use sassafras::tables::encoding::{FORMS, Form};
use sassafras::tables::targets::TARGETS;
use std::collections::BTreeMap;

/// One target per generation and set of features that forms require.
const SOME: [&str; 8] = ["75", "80", "90", "100", "107", "110", "120", "121"];

#[test]
fn random_words_print_as_nvdisasm_prints_them() {
    if vendor::tool("nvdisasm").is_none() {
        println!("skipped: no target/vendor/nvdisasm");
        return;
    }
    let only = std::env::var("SASSAFRAS_OP").unwrap_or_default();
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let seed = std::env::var("SASSAFRAS_SEED").ok().and_then(|v| v.parse::<u64>().ok()).unwrap_or(0x5a55);
    let samples = if all { 200 } else { 50 };
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for target in TARGETS.iter().filter(|t| t.generation.is_some()) {
        let sm = target.name.trim_start_matches("sm_");
        if !all && !SOME.contains(&sm) {
            continue;
        }
        let mut random = words::Random::new(seed + u64::from(target.column));
        let mut batch = Vec::new();
        let here = |form: &Form| form.is_on(target) && !form.alias && (only.is_empty() || form.op.name() == only);
        for (i, form) in FORMS.iter().enumerate().filter(|(_, form)| here(form)) {
            batch.extend((0..samples).map(|_| (i, words::random_word(form, target, &mut random))));
        }
        if batch.is_empty() {
            continue;
        }
        if vendor::tool_of("nvdisasm", sm).is_none() {
            println!("skipped: sm_{sm}: no nvdisasm of that target in target/vendor");
            continue;
        }
        let list: Vec<u128> = batch.iter().map(|b| b.1).collect();
        let mut same = 0;
        for (n, ((i, word), theirs)) in batch.iter().zip(vendor::disassemble(&list, sm)).enumerate() {
            let theirs = theirs.unwrap_or_else(|| "(refused)".into());
            let ours = text(target, *word, n as u64 * 16);
            if ours == theirs {
                same += 1;
                continue;
            }
            let form = &FORMS[*i];
            let key = format!("sm_{sm} {} {:#05x} form {i}", form.op.name(), form.fixed.1 & 0xfff);
            wrong.entry(key).or_default().push(format!("{word:032x}\n     ours   {ours}\n     theirs {theirs}"));
        }
        println!("sm_{sm}: {same} of {} words of {} forms print alike", batch.len(), batch.len() / samples);
        assert!(same > 0, "no word for sm_{sm}");
    }
    for (key, list) in &wrong {
        println!("{key}: {} of {samples}, first {}", list.len(), list[0]);
    }
    assert!(wrong.is_empty(), "{} forms print otherwise", wrong.len());
}

/// Our text of a word, or the reason why it does not decode or survive the round trip.
fn text(target: &Target, word: u128, at: u64) -> String {
    let inst = match sass::decode(target, word) {
        Ok(inst) => inst,
        Err(error) => return format!("({error})"),
    };
    match sass::encode(target, &inst) {
        Ok(again) if again == word => vendor::normal(&sass::text(target, &inst, at, None)),
        Ok(again) => format!("(encodes to {again:032x})"),
        Err(error) => format!("({error})"),
    }
}
