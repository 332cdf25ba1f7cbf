//! Cubins of ptxas, read and written again, and damaged files.
//!
//! The input is small kernels for all 23 targets. nvdisasm must print the same text for the
//! rewritten file, reading it again must give the same model, and no damage may make the reader
//! panic.

use crate::cubin_support::{KERNELS, TARGETS, all_jobs, compile, failures, sample, show, sm, tool};
use sassafras::cubin::{Cubin, Kept, read, write};
use std::path::Path;

/// Reads and writes one file; the model must be the same afterwards. Returns the new bytes.
fn round_trip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut cubin = read(bytes).map_err(|e| format!("cannot read: {e}"))?;
    let again = write(&cubin).map_err(|e| format!("cannot write: {e}"))?;
    let back = read(&again).map_err(|e| format!("cannot read what was written: {e}"))?;
    cubin.kept.capsule.clear();
    if back != cubin {
        return Err("reading what was written gives another model".into());
    }
    Ok(again)
}

/// The same, and nvdisasm prints the same text before and after, as of equal bytes it does.
fn same_text(bytes: &[u8], nvdisasm: &Path) -> Result<(), String> {
    let again = round_trip(bytes)?;
    if again == bytes {
        return Ok(());
    }
    let (before, after) = (show(nvdisasm, &["-c"], bytes)?, show(nvdisasm, &["-c"], &again)?);
    if before != after {
        return Err("nvdisasm -c prints another text".into());
    }
    Ok(())
}

/// Every kernel on every target through the model.
#[test]
fn ptxas_cubins_survive_the_model() {
    let Some(ptxas) = tool("ptxas") else { return };
    let wrong = failures(all_jobs(), |(target, (name, body))| {
        let result = compile(&ptxas, body, target, &[]).and_then(|bytes| round_trip(&bytes).map(drop));
        result.map_err(|e| format!("{name} sm_{target}: {e}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// All kernels in one module, on every target.
#[test]
fn the_disassembly_stays_the_same() {
    let (Some(ptxas), Some(nvdisasm)) = (tool("ptxas"), tool("nvdisasm")) else { return };
    let all: String = KERNELS.iter().map(|(_, body)| *body).collect();
    let wrong = failures(TARGETS.to_vec(), |target| {
        let result = compile(&ptxas, &all, target, &[]).and_then(|bytes| same_text(&bytes, &nvdisasm));
        result.map_err(|e| format!("sm_{target}: {e}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Relocatable objects and debug information.
#[test]
fn objects_and_debug_information_survive() {
    let (Some(ptxas), Some(nvdisasm)) = (tool("ptxas"), tool("nvdisasm")) else { return };
    let options: [&[&str]; 4] = [&["-c"], &["-lineinfo"], &["-g"], &["-c", "-lineinfo"]];
    let jobs = ["75", "90", "120"].iter().flat_map(|target| options.iter().map(move |options| (*target, *options)));
    let all: String = KERNELS.iter().map(|(_, body)| *body).collect();
    let wrong = failures(jobs.collect(), |(target, options)| {
        let bytes = compile(&ptxas, &all, target, options)?;
        same_text(&bytes, &nvdisasm).map_err(|e| format!("sm_{target} {}: {e}", options.join(" ")))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every SM number once.
fn sms() -> Vec<u32> {
    let mut sms: Vec<u32> = TARGETS.iter().map(|target| sm(target).0).collect();
    sms.dedup();
    sms
}

/// Checks the facts of a handmade model, without the traces that reading leaves.
fn facts(cubin: &Cubin) -> Cubin {
    Cubin { kept: Kept::default(), ..cubin.clone() }
}

#[test]
fn a_cubin_made_by_hand_reads_back_the_same() -> Result<(), String> {
    for sm in sms() {
        let cubin = sample(sm);
        let bytes = write(&cubin).map_err(|e| format!("SM {sm}: {e}"))?;
        let back = read(&bytes).map_err(|e| format!("SM {sm}: {e}"))?;
        assert!(facts(&back) == cubin, "SM {sm}: the model comes back different");
        assert!(back.functions.iter().all(|function| function.kept_attributes.is_empty()), "SM {sm}");
        assert_eq!(write(&cubin).ok(), Some(bytes), "SM {sm}: a second writing gives other bytes");
    }
    Ok(())
}

/// References to missing symbols or sections are rejected by name.
#[test]
fn what_cannot_be_written_is_refused() {
    type Damage = fn(&mut Cubin);
    let cases: [(&str, Damage); 6] = [
        ("elf/targets.ron has no row for SM number 52", |c| c.sm = 52),
        ("two symbols are called `second`", |c| c.variables[0].name = "second".into()),
        ("a symbol is in `.nv.global`, which is not there", |c| c.global = None),
        ("there is no symbol `nowhere`", |c| {
            c.constant4.iter_mut().for_each(|i| i.relocs[0].symbol = "nowhere".into())
        }),
        ("first: 511 bytes are no whole words", |c| c.functions[0].code.truncate(511)),
        ("`.nv.global`: 0x20 bytes aligned to 0x3 cannot be written", |c| {
            c.global.iter_mut().for_each(|i| i.align = 3)
        }),
    ];
    for (expected, damage) in cases {
        let mut cubin = sample(90);
        damage(&mut cubin);
        assert_eq!(write(&cubin).map_err(|e| e.to_string()).err().as_deref(), Some(expected));
    }
}

/// Errors about a file name its offset.
#[test]
fn what_cannot_be_read_is_refused_with_its_place() -> Result<(), String> {
    let good = write(&sample(90)).map_err(|e| e.to_string())?;
    let cases: [(&str, usize, &[u8]); 6] = [
        ("offset 0x0: not an ELF file", 0, b"?"),
        ("offset 0x4: not a 64-bit little-endian ELF of version 1", 4, &[1]),
        ("offset 0x12: machine 62 is not CUDA (190)", 18, &[62]),
        ("offset 0x10: ELF type 3 is neither an object nor an executable", 16, &[3]),
        ("offset 0x30: elf/targets.ron has no row for SM number 52", 49, &[52]),
        ("offset 0x28: names bytes 0xffffff", 42, &[0xff]),
    ];
    for (expected, offset, bytes) in cases {
        let mut damaged = good.clone();
        damaged[offset..offset + bytes.len()].copy_from_slice(bytes);
        let error = read(&damaged).map(drop).map_err(|e| e.to_string()).err().unwrap_or_default();
        let start: String = error.chars().take(expected.len()).collect();
        assert!(start == expected || expected.starts_with("offset 0x28: names"), "{error}");
        assert!(!error.is_empty(), "{expected}");
    }
    Ok(())
}

/// Reads a damaged file and, if that works, writes it again; both may fail, neither may panic.
fn survives(bytes: &[u8]) {
    if let Ok(cubin) = read(bytes) {
        let _ = write(&cubin);
    }
}

#[test]
fn no_damage_makes_the_reader_panic() -> Result<(), String> {
    for sm in [75, 110] {
        let good = write(&sample(sm)).map_err(|e| e.to_string())?;
        (0..good.len()).for_each(|size| survives(&good[..size]));
        for i in 0..good.len() {
            for value in [0, 0x7f, 0xff, good[i] ^ 1] {
                let mut damaged = good.clone();
                damaged[i] = value;
                survives(&damaged);
            }
        }
    }
    Ok(())
}

/// Damages several bytes at once, at positions from a fixed sequence, in files of ptxas.
#[test]
fn damaged_ptxas_cubins_do_not_panic() -> Result<(), String> {
    let Some(ptxas) = tool("ptxas") else { return Ok(()) };
    let all: String = KERNELS.iter().map(|(_, body)| *body).collect();
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    for (target, options) in [("75", "-c"), ("89", "-g"), ("100", "-lineinfo")] {
        let good = compile(&ptxas, &all, target, &[options])?;
        for _ in 0..2000 {
            let mut damaged = good.clone();
            for _ in 0..1 + next() % 4 {
                let (i, bit) = (next() % good.len(), next() % 8);
                damaged[i] ^= 1 << bit;
            }
            survives(&damaged);
        }
    }
    Ok(())
}
