//! Barriers, and helpers that end in a trap.
//!
//! Input: a helper. Output: whether threads wait for each other as they should (what one writes before, another reads after; the machine
//! reports races and deadlocks besides), whether reductions are right; whether exactly the wrong accesses trap.

use super::harness::{Bench, Random, call, head, kernel, loads, registers, stores};
use sassafras::tables::helpers::Helper;

/// Threads of the block.
const THREADS: u32 = 64;

/// `__cuda_sm70_barrier_*`
pub fn barrier(helper: &'static Helper, target: &str, r: &mut Random) -> Option<Result<(), String>> {
    let rest = helper.name.strip_prefix("__cuda_sm70_barrier_")?;
    let fixed = rest.split('_').find_map(|w| w.parse::<u64>().ok());
    let id = fixed.unwrap_or(r.below(16));
    Some(met(helper, target, rest, id, r).map_err(|e| format!("{} {target}: {e}", helper.name)))
}

fn met(helper: &'static Helper, target: &str, rest: &str, id: u64, r: &mut Random) -> Result<(), String> {
    let (declarations, called) = call(helper);
    let has = |name: &str| helper.params.iter().any(|s| s.name == name);
    let mut given = String::new();
    let params = registers(helper.params);
    let load = loads(&params);
    // Every thread writes its square and reads that of a thread of the other warp.
    let write = "mov.u64 w, tile;\nmul.lo.u32 x32, t, t;\n.reg .b64 own, other; .reg .b32 there, theirs; .reg .pred odd, second;\n\
                 mul.wide.u32 own, t, 4;\nadd.u64 own, own, w;\nxor.b32 there, t, 32;\nmul.wide.u32 other, there, 4;\nadd.u64 other, other, w;\n\
                 st.shared.b32 [own], x32;\n";
    let read = "ld.shared.b32 theirs, [other];\n";
    given += &load;
    given += write;
    given += "mov.b32 theirs, 0;\nmov.b32 dst, 0;\nand.b32 x32, t, 1;\nsetp.eq.u32 odd, x32, 1;\nsetp.gt.u32 second, t, 31;\n";
    let arrive = rest.starts_with("arrive");
    if arrive {
        // The first warp only arrives; the second waits for it.
        given += &format!(
            "@second bra waiting;\n{called}bra done;\nwaiting:\nbarrier.cta.sync {id}, {THREADS};\n{read}done:\n"
        );
    } else {
        // Odd and even threads come from different places.
        let other = called.replace("m_", "n_");
        given += &format!("@odd bra elsewhere;\n{called}bra met;\nelsewhere:\n{other}met:\n{read}");
    }
    let results = vec![("b32", "dst".to_string()), ("b32", "theirs".to_string())];
    given += &stores(&results);
    let text = head(helper, target) + ".shared .align 4 .b32 tile[64];\n" + &kernel(&declarations, &given);
    let bench = Bench::text(&text, target, THREADS, [params.len(), 2])?;
    let set = match r.below(4) {
        0 => u64::MAX,
        1 => 0,
        2 => 1 << r.below(64),
        _ => r.next(),
    };
    let lane = |t: u64| -> Vec<u64> {
        params
            .iter()
            .map(|(_, name)| match name.as_str() {
                "arg0" => id,
                "cnt" => THREADS.into(),
                _ => (set >> t & 1) * (t + 1),
            })
            .collect()
    };
    let lanes: Vec<Vec<u64>> = (0..u64::from(THREADS)).map(lane).collect();
    let (got, _) = bench.run(&lanes, &[0; 64], r.next())?;
    let want = match rest {
        _ if !has("parg") => 0,
        r if r.starts_with("red_and") => (set == u64::MAX).into(),
        r if r.starts_with("red_or") => (set != 0).into(),
        _ => u64::from(set.count_ones()),
    };
    for (t, got) in got.iter().enumerate() {
        let theirs = if arrive && t < 32 { 0 } else { ((t ^ 32) * (t ^ 32)) as u64 };
        if *got != [want, theirs] {
            return Err(format!("thread {t}: {got:?} and not {:?}", [want, theirs]));
        }
    }
    Ok(())
}

/// `__cuda_sm70_warpsync`: lanes of a mask exchange words over shared memory.
pub fn warpsync(helper: &'static Helper, target: &str, r: &mut Random) -> Option<Result<(), String>> {
    if helper.name != "__cuda_sm70_warpsync" {
        return None;
    }
    let (declarations, called) = call(helper);
    let body = format!(
        "{}mov.u64 w, tile;\n.reg .b64 own, other; .reg .b32 there, theirs;\nmul.wide.u32 own, t, 4;\nadd.u64 own, own, w;\n\
         xor.b32 there, t, 1;\nmul.wide.u32 other, there, 4;\nadd.u64 other, other, w;\nmov.b32 theirs, 77;\nst.shared.b32 [own], t;\n\
         mov.u32 this_lane, %laneid;\nshr.u32 x32, mask, this_lane;\nand.b32 x32, x32, 1;\nsetp.eq.u32 out_of_it, x32, 0;\n@out_of_it bra past;\n{called}\
         ld.shared.b32 theirs, [other];\npast:\n{}",
        loads(&registers(helper.params)),
        stores(&[("b32", "theirs".to_string())])
    );
    let text = head(helper, target) + ".shared .align 4 .b32 tile[32];\n" + &kernel(&declarations, &body);
    let run = |r: &mut Random| -> Result<(), String> {
        let bench = Bench::text(&text, target, 32, [1, 1])?;
        // Whole pairs, for they read each other's.
        let pairs = r.next() as u16;
        let mask = (0..32).fold(0u64, |m, l| m | u64::from(pairs >> (l / 2) & 1) << l);
        let (got, _) = bench.run(&vec![vec![mask]; 32], &[0; 8], r.next())?;
        for (l, got) in got.iter().enumerate() {
            let want = if mask >> l & 1 == 1 { l as u64 ^ 1 } else { 77 };
            if got[0] != want {
                return Err(format!("lane {l}: {} and not {want}", got[0]));
            }
        }
        Ok(())
    };
    Some(run(r).map_err(|e| format!("{} {target}: {e}", helper.name)))
}

/// Traps of guards, and checks of accesses.
pub fn trap(helper: &'static Helper, target: &str, r: &mut Random) -> Option<Result<(), String>> {
    let name = helper.name;
    let guard = name.contains("_guardrail_trap_");
    let check = name.strip_prefix("__cuda_sanitizer_memcheck_");
    if !guard && check.is_none() {
        return None;
    }
    let run = |r: &mut Random| -> Result<(), String> {
        let bench = Bench::of(helper, target, 32)?;
        let names = registers(helper.params);
        for _ in 0..8 {
            let size = 1u64 << r.below(5);
            let first = r.next() & 0x7fff_ffff_fff0;
            let length = 16 * (1 + r.below(4));
            let wrong = guard || r.below(2) == 0 && check.is_some_and(|c| c != "malloc" && c != "readmetadata");
            // One lane's access is just outside, or not aligned; the others are right.
            let lanes: Vec<Vec<u64>> = (0..32)
                .map(|lane| {
                    let place = first + size * r.below(length / size);
                    let place = match (wrong && lane == 17, r.below(2)) {
                        (true, 0) => first + length - size + size,
                        (true, _) if size > 1 => place + 1,
                        (true, _) => first + length,
                        _ => place,
                    };
                    names
                        .iter()
                        .map(|(_, n)| match n.as_str() {
                            "address" => place,
                            "first" => first,
                            "end" => first + length,
                            "size" | "align" => size,
                            "p0" => {
                                if check == Some("free") {
                                    if wrong && lane == 17 { first + 8 } else { first }
                                } else {
                                    place
                                }
                            }
                            _ => r.next() & 0xffff_ffff,
                        })
                        .collect()
                })
                .collect();
            let outcome = bench.run(&lanes, &[0; 8], r.next());
            match (wrong, outcome) {
                (true, Err(message)) if message.contains("trap") => {}
                (false, Ok((got, _))) => {
                    let want = |lane: usize| match check {
                        Some("malloc") => vec![lanes[lane][0]],
                        Some("readmetadata") => vec![0],
                        _ => vec![],
                    };
                    if let Some(lane) = (0..32).find(|l| got[*l] != want(*l)) {
                        return Err(format!("lane {lane}: {:?}", got[lane]));
                    }
                }
                (wrong, outcome) => return Err(format!("wrong access: {wrong}; {:?}", outcome.map(|_| "no trap"))),
            }
        }
        Ok(())
    };
    Some(run(r).map_err(|e| format!("{name} {target}: {e}")))
}
