//! Compares attributes of our cubins with those of ptxas's: those that depend on the text or on
//! words that any code for it has, on every target.
//!
//! Offsets of instructions and numbers of registers are left out, as the code is our own.

use crate::cubin_support::{TARGETS, compile, failures, sm, tool};
use sassafras::compile::Options;
use sassafras::cubin::{Attribute, listing};
use sassafras::tables::elf::{AttributeRow, AttributeValue as V};
use std::path::Path;

/// A record in words, if it is of a kind that is compared.
fn shown(record: &Attribute, symbols: &[String]) -> Option<String> {
    let row = AttributeRow::of(record.id)?;
    let words: Vec<u32> =
        record.payload.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let rest = match row.value {
        V::SamplerInit | V::SamplerUnnormalized => format!("{} {:#x}", symbols[words[0] as usize], words[1]),
        V::PartlyRead => format!("{:x?}", words.chunks(2).map(|load| load[1]).collect::<Vec<_>>()),
        V::RegisterMap => format!("{:x?}", words.chunks(3).map(|map| (map[1] & 0xffff, map[2])).collect::<Vec<_>>()),
        V::IsaVersion => format!("{:x?}", record.payload),
        V::IndependentTextures | V::AsksKind | V::BlockZ => String::new(),
        // What they stand between.
        V::RegisterCount | V::FrameSize => symbols[words[0] as usize].clone(),
        _ => return None,
    };
    Some(format!("{} {rest}", row.name))
}

/// The compared records of a cubin by section, in their order.
fn facts(bytes: &[u8]) -> Result<Vec<String>, String> {
    let listing = listing(bytes).map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    for (section, records) in listing.sections.iter().filter(|(name, _)| name.starts_with(".nv.info")) {
        out.extend(records.iter().filter_map(|r| Some(format!("{section}: {}", shown(r, &listing.symbols)?))));
    }
    Ok(out)
}

/// Both compilers about one text.
fn agree(ptxas: &Path, target: &str, (body, mode): (&str, &str), object: bool) -> Result<(), String> {
    let options: &[&str] = if object { &["-c"] } else { &[] };
    let theirs = facts(&compile(ptxas, body, &format!("{target}{mode}"), options)?)?;
    let options = Options { relocatable: object, ..Options::new(&format!("sm_{target}")) };
    let text = format!(".version 9.0\n.target sm_{target}{mode}\n.address_size 64\n{body}");
    let ours = sassafras::compile::compile(&text, &options).map_err(|e| format!("{e:?}"))?;
    let ours = facts(&ours.cubin)?;
    if theirs == ours {
        Ok(())
    } else {
        Err(format!("sm_{target}:\n{}\nours:\n{}", theirs.join("\n"), ours.join("\n")))
    }
}

const APART: &str = ", texmode_independent";

/// Samplers, kinds of handles, the block's number in z, and words that nobody reads.
#[test]
fn what_the_text_says_is_stated_as_ptxas_states_it() {
    let Some(ptxas) = tool("ptxas") else { return };
    let body = include_str!("cubin_support/stated.ptx");
    let wrong = failures(TARGETS.to_vec(), |target| agree(&ptxas, target, (body, APART), false));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same of an object, which names no texture.
#[test]
fn objects_state_it_too() {
    let Some(ptxas) = tool("ptxas") else { return };
    let body = include_str!("cubin_support/stated.ptx");
    let (body, _) = body.split_once(".visible .entry sampled").unwrap();
    let wrong = failures(TARGETS.to_vec(), |target| agree(&ptxas, target, (body, APART), true));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the counts of arrivals are that complete no phase.
#[test]
fn arrivals_name_their_counts() {
    let Some(ptxas) = tool("ptxas") else { return };
    let body = include_str!("cubin_support/arrivals.ptx");
    let targets = TARGETS.into_iter().filter(|target| sm(target).0 >= 90).collect();
    let wrong = failures(targets, |target| agree(&ptxas, target, (body, ""), false));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What stands in the section of the module where there is no kernel, alone and with a function.
#[test]
fn modules_without_kernels_state_their_version() {
    let Some(ptxas) = tool("ptxas") else { return };
    let whole = include_str!("cubin_support/without_kernels.ptx");
    let (variables, _) = whole.split_once(".visible .func").unwrap();
    let jobs = TARGETS.into_iter().flat_map(|target| {
        ["", variables, whole].into_iter().flat_map(move |body| [(target, body, false), (target, body, true)])
    });
    let wrong = failures(jobs.collect(), |(target, body, object)| agree(&ptxas, target, (body, APART), object));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
