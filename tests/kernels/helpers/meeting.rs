//! Tests of barrier helpers, and of helpers that end in a trap.
//!
//! For barriers it checks that threads wait for each other (one writes before, another reads after;
//! the simulator also reports races and deadlocks) and that reductions are right; for traps, that
//! exactly the invalid accesses trap.

use super::harness::{Bench, Random, call, head, kernel, loads, registers, stores};
use sassafras::tables::helpers::Helper;

/// Threads of the block: four warps.
const THREADS: u64 = 128;

/// What a thread does at the barrier: stays away (waiting at another barrier), calls the helper, or
/// uses the PTX instruction.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Away,
    Calls,
    Waits,
}

/// `__cuda_sm70_barrier_*`
pub fn barrier(helper: &'static Helper, target: &str, r: &mut Random) -> Option<Result<(), String>> {
    let rest = helper.name.strip_prefix("__cuda_sm70_barrier_")?;
    let fixed = rest.split('_').find_map(|w| w.parse::<u64>().ok());
    let id = fixed.unwrap_or(r.below(16));
    Some(met(helper, target, rest, id, r).map_err(|e| format!("{} {target}: {e}", helper.name)))
}

/// The kernel. Before the helper's own inputs, a thread gets its role, the thread whose word it
/// reads, the barrier, and the number of participants.
///
/// Every thread writes its square; a thread that called or waited reads that of its partner. Odd
/// and even threads call from different places. All threads meet at the next barrier in the end,
/// where the threads that stayed away wait, so that they have neither exited nor arrived at the
/// helper's barrier.
fn meeting(helper: &'static Helper, target: &str) -> (String, [usize; 2]) {
    let (declarations, called) = call(helper);
    let own = ["part", "there", "number", "meet"].map(|n| ("b32", n.to_string()));
    let params: Vec<(&'static str, String)> = own.into_iter().chain(registers(helper.params)).collect();
    let mut body =
        ".reg .b32 part, there, number, meet, theirs, after; .reg .b64 tile_at, mine, other; .reg .pred odd, now;\n"
            .to_string();
    body += &loads(&params);
    body += "mov.u64 tile_at, tile;\nmul.lo.u32 x32, t, t;\nmul.wide.u32 mine, t, 4;\nadd.u64 mine, mine, tile_at;\n\
             mul.wide.u32 other, there, 4;\nadd.u64 other, other, tile_at;\nst.shared.b32 [mine], x32;\nmov.b32 theirs, 0;\nmov.b32 dst, 0;\n\
             add.u32 after, number, 1;\nand.b32 after, after, 15;\nsetp.eq.u32 now, part, 0;\n@now bra away;\nsetp.eq.u32 now, part, 2;\n@now bra waiting;\n\
             and.b32 x32, t, 1;\nsetp.eq.u32 odd, x32, 1;\n@odd bra elsewhere;\n";
    body += &format!("{called}bra met;\nelsewhere:\n{}met:\n", called.replace("m_", "n_"));
    body += match helper.name.contains("_arrive") {
        true => "bra away;\n",
        false => "bra read;\n",
    };
    body += "waiting:\nbarrier.cta.sync number, meet;\nread:\nld.shared.b32 theirs, [other];\naway:\nbarrier.cta.sync after;\n";
    body += &stores(&[("b32", "dst".to_string()), ("b32", "theirs".to_string())]);
    let tile = format!(".shared .align 4 .b32 tile[{THREADS}];\n");
    (head(helper, target) + &tile + &kernel(&declarations, &body), [params.len(), 2])
}

fn met(helper: &'static Helper, target: &str, rest: &str, id: u64, r: &mut Random) -> Result<(), String> {
    let has = |name: &str| helper.params.iter().any(|s| s.name == name);
    let arrive = rest.starts_with("arrive");
    // Some of the warps if the helper takes a count, otherwise all; a thread that only arrives
    // needs another warp that waits.
    let least = 1 + u64::from(arrive);
    let mut warps: Vec<u64> = (0..THREADS / 32).collect();
    let stay = if has("cnt") { least + r.below(THREADS / 32 - least + 1) } else { THREADS / 32 };
    while warps.len() as u64 > stay {
        warps.remove(r.below(warps.len() as u64) as usize);
    }
    let place = |t: u64| warps.iter().position(|w| *w == t / 32);
    let part = |t: u64| match place(t) {
        None => Part::Away,
        Some(i) if arrive && i + 1 == warps.len() => Part::Waits,
        Some(_) => Part::Calls,
    };
    let partner = |t: u64| place(t).map_or(t, |i| warps[(i + 1) % warps.len()] * 32 + (t + 1) % 32);
    let meet = 32 * stay;
    let set = match r.below(4) {
        0 => u128::MAX,
        1 => 0,
        2 => 1 << r.below(THREADS),
        _ => u128::from(r.next()) << 64 | u128::from(r.next()),
    };
    let lane = |t: u64| -> Vec<u64> {
        let own = [part(t) as u64, partner(t), id, meet];
        let given = registers(helper.params).into_iter().map(|(_, name)| match name.as_str() {
            "arg0" => id,
            "cnt" => meet,
            _ => (set >> t & 1) as u64 * (t + 1),
        });
        own.into_iter().chain(given).collect()
    };
    let lanes: Vec<Vec<u64>> = (0..THREADS).map(lane).collect();
    let (text, words) = meeting(helper, target);
    let (got, _) = Bench::text(&text, target, THREADS as u32, words)?.run(&lanes, &[0; 64], r.next())?;
    let within = (0..THREADS).filter(|t| place(*t).is_some()).fold(0u128, |m, t| m | 1 << t);
    let found = match rest {
        _ if !has("parg") => 0,
        r if r.starts_with("red_and") => (set & within == within).into(),
        r if r.starts_with("red_or") => (set & within != 0).into(),
        _ => u64::from((set & within).count_ones()),
    };
    for (t, got) in (0..THREADS).zip(&got) {
        let want = if part(t) == Part::Calls { found } else { 0 };
        let reads = part(t) == Part::Waits || part(t) == Part::Calls && !arrive;
        let theirs = if reads { partner(t) * partner(t) } else { 0 };
        if *got != [want, theirs] {
            return Err(format!("thread {t} of {meet} that meet: {got:?} and not {:?}", [want, theirs]));
        }
    }
    Ok(())
}

/// `__cuda_sm70_warpsync`: the lanes of a mask exchange words through shared memory.
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
        // Whole pairs, because they read each other's words.
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

/// Traps of guards, and access checks.
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
            // One lane's access is just out of bounds, or misaligned; the others are valid.
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
