//! Tests helpers that return the active lanes, in diverged warps.
//!
//! For `query_activemask` and `votesync_ballot_groupwise`, each lane calls from one of four places
//! that lanes reach in groups, and must get exactly the lanes that are active with it. A lane
//! outside the mask, if any, does not call.

use super::harness::{Bench, Random, call, head, kernel, loads, registers, stores};
use sassafras::tables::helpers::Helper;

/// Number of call sites; one more index stands for lanes that do not call.
const PLACES: u64 = 4;

/// A kernel in which the first input of a lane, before the helper's own, is its call site.
fn parted(helper: &'static Helper, target: &str) -> (String, [usize; 2]) {
    let (declarations, called) = call(helper);
    let params: Vec<_> = [("b32", "place".to_string())].into_iter().chain(registers(helper.params)).collect();
    let results = registers(helper.returns);
    let mut body = format!(".reg .b32 place; .reg .pred now;\n{}", loads(&params));
    body += &results.iter().fold(String::new(), |text, (_, name)| text + &format!("mov.b32 {name}, 0;\n"));
    for place in 0..PLACES {
        body += &format!("setp.eq.u32 now, place, {place};\n@now bra place_{place};\n");
    }
    body += "bra past;\n";
    for place in 0..PLACES {
        body += &format!("place_{place}:\n{called}bra past;\n");
    }
    body += &format!("past:\n{}", stores(&results));
    (head(helper, target) + &kernel(&declarations, &body), [params.len(), results.len()])
}

/// Tests one warp; `None` for a helper of another kind.
pub fn together(helper: &'static Helper, target: &str, r: &mut Random) -> Option<Result<(), String>> {
    let ballot = helper.name.ends_with("_ballot_groupwise");
    if !ballot && !helper.name.contains("_query_activemask") {
        return None;
    }
    let (few, single) = (1 + r.below(PLACES), r.below(32));
    let mask = if ballot && r.below(3) > 0 { r.next() as u32 } else { u32::MAX };
    let kind = r.below(3);
    let place = |lane: u64, r: &mut Random| match kind {
        _ if mask >> lane & 1 == 0 => PLACES,
        0 => r.below(few),
        1 => lane * few / 32,
        _ => u64::from(lane == single),
    };
    let lanes: Vec<Vec<u64>> = (0..32)
        .map(|lane| {
            let given = if ballot { vec![r.below(2) * r.below(1 << 31), mask.into()] } else { vec![] };
            [vec![place(lane, r)], given].concat()
        })
        .collect();
    let (text, words) = parted(helper, target);
    let run = Bench::text(&text, target, 32, words).and_then(|bench| bench.run(&lanes, &[0; 8], r.next()));
    let judged = run.and_then(|(got, _)| {
        for (lane, got) in got.iter().enumerate() {
            let here = |l: &usize| lanes[*l][0] == lanes[lane][0] && (!ballot || lanes[*l][1] != 0);
            let set = (0..32).filter(here).fold(0u64, |m, l| m | 1 << l);
            let want = if lanes[lane][0] == PLACES { 0 } else { set };
            if *got != [want] {
                return Err(format!("lane {lane} of {lanes:x?}: {got:x?} and not {want:x}"));
            }
        }
        Ok(())
    });
    Some(judged.map_err(|e| format!("{} {target}: {e}", helper.name)))
}
