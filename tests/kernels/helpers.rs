//! The helpers: their number, and that each implemented body computes what its row says.
//!
//! The input is every row of `tables/helpers`. Ids, counts and states must be right; each body runs
//! on the simulator under jitter, called from a kernel that only declares it, and is compared with
//! an exact reference. By default each runs on one of the six generations that use it; with
//! `SASSAFRAS_HELPERS=N` on all of them, with N random inputs (and edge values) for arithmetic and
//! N / 500 lanes for the others on each generation, or 512 arithmetic inputs if the code equals
//! that of an earlier generation. `SASSAFRAS_HELPER=PART` narrows by name. ptxas must accept every
//! body.

mod arithmetic;
mod fragments;
mod groups;
mod harness;
mod meeting;
mod tiles;
mod warp;

use crate::exact;
use harness::{Bench, Random, registers};
use object::{Object, ObjectSection, ObjectSymbol};
use sassafras::compile::{Options, compile};
use sassafras::tables::Target;
use sassafras::tables::helpers::{CATEGORIES, HELPERS, Helper, Tier};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const GENERATIONS: [&str; 6] = ["sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"];
const BLOCK: usize = 256;
/// Default number of random arithmetic inputs.
const FEW: usize = 512;

/// Generations on which a helper runs: those that use it, or, for a helper of older generations,
/// those that can compile its body.
fn generations(helper: &Helper) -> Vec<&'static str> {
    let used = |name: &&&str| Target::by_name(name).is_some_and(|t| helper.used_on(t.column));
    let used: Vec<&str> = GENERATIONS.iter().filter(used).copied().collect();
    if used.is_empty() { GENERATIONS.to_vec() } else { used }
}

fn asked() -> Option<usize> {
    std::env::var("SASSAFRAS_HELPERS").ok().and_then(|n| n.parse().ok())
}

/// Runs one helper on one target, with this many inputs for arithmetic or lanes for others.
fn judge(helper: &'static Helper, target: &str, inputs: usize, lanes: usize) -> Result<(), String> {
    let seed = u64::from(helper.id) * 1000 + GENERATIONS.iter().position(|g| *g == target).unwrap_or(0) as u64;
    let mut r = Random(seed);
    if let Some((kinds, reference)) = arithmetic::reference(helper.name) {
        return single(helper, target, (&kinds, &reference), inputs, &mut r);
    }
    let warps = lanes.div_ceil(32).max(1);
    type Try = fn(&'static Helper, &str, &mut Random) -> Option<Result<(), String>>;
    let tries: [Try; 7] = [
        tiles::product,
        tiles::place,
        tiles::matrices,
        meeting::barrier,
        meeting::warpsync,
        meeting::trap,
        groups::together,
    ];
    for one in tries {
        let Some(first) = one(helper, target, &mut r) else { continue };
        first?;
        for _ in 1..warps.min(64) {
            one(helper, target, &mut r).unwrap_or(Ok(()))?;
        }
        return Ok(());
    }
    together(helper, target, warps, &mut r)
}

type Arithmetic<'a> = (&'a [arithmetic::Kind], &'a arithmetic::Reference);

/// Runs lanes independently: edge values, then random ones.
fn single(
    helper: &'static Helper,
    target: &str,
    (kinds, reference): Arithmetic,
    inputs: usize,
    r: &mut Random,
) -> Result<(), String> {
    if kinds.len() != registers(helper.params).len() {
        return Err(format!("{}: {} parameters", helper.name, registers(helper.params).len()));
    }
    let bench = Bench::of(helper, target, BLOCK as u32)?;
    let mut edges: Vec<Vec<u64>> = vec![Vec::new()];
    for kind in kinds.iter().take(3) {
        edges =
            edges.iter().flat_map(|e| kind.edges().into_iter().map(move |x| [e.as_slice(), &[x]].concat())).collect();
    }
    for edge in &mut edges {
        edge.extend(kinds[edge.len()..].iter().map(|k| k.random(r)));
    }
    let total = (edges.len() + inputs).next_multiple_of(BLOCK);
    let mut lanes = edges;
    let mut done = 0;
    while done < total {
        let batch = (total - done).min(64 * BLOCK);
        while lanes.len() < batch {
            lanes.push(kinds.iter().map(|k| k.random(r)).collect());
        }
        let rest = lanes.split_off(batch);
        let (got, _) = bench.run(&lanes, &[0; 8], r.next()).map_err(|e| format!("{} {target}: {e}", helper.name))?;
        for (t, (lane, got)) in lanes.iter().zip(&got).enumerate() {
            let want = reference(lane, (t % BLOCK) as u64);
            if want.len() != got.len() || want.iter().zip(got).any(|(w, g)| !w.is(*g)) {
                return Err(format!("{} {target} of {lane:x?}: {got:x?} and not {want:x?}", helper.name));
            }
        }
        done += batch;
        lanes = rest;
    }
    Ok(())
}

/// Runs whole warps.
fn together(helper: &'static Helper, target: &str, warps: usize, r: &mut Random) -> Result<(), String> {
    let params = registers(helper.params);
    let bench = Bench::of(helper, target, 32)?;
    for _ in 0..warps {
        let known = fragments::case(helper.name, r)
            .or_else(|| fragments::in_order(helper.name, r))
            .or_else(|| fragments::quarters(helper.name, r));
        let (lanes, want) = match known {
            Some((lanes, want)) => (lanes, want.into_iter().map(Some).collect()),
            None => {
                let lanes = warp::inputs(helper.name, &params, r);
                let want = warp::reference(helper.name, &lanes).ok_or(format!("{}: no reference", helper.name))?;
                (lanes, want)
            }
        };
        let (got, _) = bench.run(&lanes, &[0; 8], r.next()).map_err(|e| format!("{} {target}: {e}", helper.name))?;
        for (lane, (want, got)) in want.iter().zip(&got).enumerate() {
            let open = |want: &Vec<u64>| *want == [u64::MAX];
            if let Some(want) = want.as_ref().filter(|w| !open(w))
                && want != got
            {
                return Err(format!(
                    "{} {target} lane {lane} of {:x?}: {got:x?} and not {want:x?}",
                    helper.name, lanes[lane]
                ));
            }
        }
    }
    Ok(())
}

/// A helper on a generation, with a number of arithmetic inputs.
struct Run {
    helper: &'static Helper,
    target: &'static str,
    inputs: usize,
}

/// The runs of a helper: few inputs on one generation, or all inputs on each whose code differs
/// from the earlier ones.
fn runs(helper: &'static Helper, all: Option<usize>) -> Vec<Run> {
    let on = generations(helper);
    let Some(n) = all else {
        return vec![Run { helper, target: on[usize::from(helper.id) % on.len()], inputs: FEW }];
    };
    if arithmetic::reference(helper.name).is_none() {
        return on.into_iter().map(|target| Run { helper, target, inputs: n }).collect();
    }
    let mut seen = Vec::new();
    let mut run = |target| {
        let words = Bench::of(helper, target, BLOCK as u32).map(|b| b.words_of_code());
        let known = words.is_ok() && seen.contains(&words);
        seen.push(words);
        Run { helper, target, inputs: if known { FEW } else { n } }
    };
    on.into_iter().map(&mut run).collect()
}

/// Every pair of a helper and a generation, with one thread per core.
#[test]
fn bodies_compute_what_their_rows_say() {
    let all = asked();
    let part = std::env::var("SASSAFRAS_HELPER").unwrap_or_default();
    let helpers = HELPERS.iter().filter(|h| h.built() && h.name.contains(&part));
    let pairs: Vec<Run> = helpers.flat_map(|h| runs(h, all)).collect();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let work = || {
        while let Some(Run { helper, target, inputs }) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(message) = judge(helper, target, *inputs, all.map_or(32, |n| n / 500)) {
                wrong.lock().unwrap().push(message);
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        (0..threads).for_each(|_| _ = scope.spawn(work));
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    let sums: Vec<&Run> = pairs.iter().filter(|r| arithmetic::reference(r.helper.name).is_some()).collect();
    let whole = sums.iter().filter(|r| all.is_some_and(|n| r.inputs == n)).count();
    println!(
        "{} bodies on {} generations: {} wrong; of {} of arithmetic {whole} with all inputs, the code of the others being theirs",
        pairs.len(),
        if all.is_some() { "all" } else { "one of the" },
        wrong.len(),
        sums.len()
    );
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.iter().take(40).map(|w| w.lines().take(3).collect::<Vec<_>>().join(" | ")).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn counts_are_those_of_the_catalogue() {
    let built = HELPERS.iter().filter(|h| h.built()).count();
    let calls = HELPERS.iter().filter(|h| h.tier() == Tier::Call).count();
    let line = format!("{} helpers, {calls} call targets, {built} built\n", HELPERS.len());
    let frozen =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/helpers/counts.txt")).unwrap();
    assert_eq!(line, frozen, "tests/cases/helpers/counts.txt; the number built may only grow");
    for (place, helper) in HELPERS.iter().enumerate() {
        assert_eq!(usize::from(helper.id), place + 1);
        assert_eq!(Helper::by_name(helper.name).map(|h| h.id), Some(helper.id));
        assert_eq!(helper.built(), !helper.body.is_empty());
    }
}

#[test]
fn s3_19_and_s3_20_ids_go_by_name_and_categories_have_their_counts() {
    let calls: Vec<&str> = HELPERS.iter().filter(|h| h.tier() == Tier::Call).map(|h| h.name).collect();
    assert!(calls.len() == 607 && HELPERS[606].tier() == Tier::Call && calls.windows(2).all(|pair| pair[0] < pair[1]));
    let counts = |tier: Tier| -> Vec<(&str, usize)> {
        let of = CATEGORIES.iter().filter(|c| HELPERS.iter().any(|h| h.category().name == c.name && h.tier() == tier));
        of.map(|c| (c.name, HELPERS.iter().filter(|h| h.category().name == c.name).count())).collect()
    };
    let call = counts(Tier::Call);
    assert_eq!((call.len(), call.iter().map(|c| c.1).sum::<usize>()), (13, 607), "{call:?}");
    assert_eq!(call.iter().find(|c| c.0 == "sm70"), Some(&("sm70", 393)));
    let groups: Vec<usize> = counts(Tier::Inline).iter().map(|c| c.1).collect();
    assert_eq!(groups, [114, 229, 80, 40, 9, 1]);
}

/// A library with every body, under changed names, since ptxas predefines some of them.
fn library(target: &str) -> String {
    let column = Target::by_name(target).unwrap().column;
    let mut text = format!(".version 9.0\n.target {target}\n.address_size 64\n");
    for helper in
        HELPERS.iter().filter(|h| h.built() && (h.used_on(column) || generations(h).len() == GENERATIONS.len()))
    {
        text += &format!(".visible {}\n{{\n{}ret;\n}}\n", helper.head.replace("__cuda_", "__own_"), helper.body);
    }
    text
}

#[test]
fn ptxas_accepts_every_body() {
    let ptxas = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
    if !ptxas.exists() {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for target in if asked().is_some() { &GENERATIONS[..] } else { &["sm_100"] } {
        let (ptx, object) = (folder.path().join("k.ptx"), folder.path().join("k.o"));
        std::fs::write(&ptx, library(target)).unwrap();
        let output = std::process::Command::new(&ptxas)
            .args(["-arch", target, "-O0"])
            .arg(&ptx)
            .arg("-o")
            .arg(object)
            .output()
            .unwrap();
        assert!(output.status.success(), "{target}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

const CALLS: &str = "
.extern .func (.reg .u64 rdv1) __cuda_sm20_div_u64 (.reg .u64 rda1, .reg .u64 rda2);
.extern .func (.reg .b32 dst) __cuda_sm70_votesync_aligned_ballot (.reg .b32 parg, .reg .b32 mask);
.visible .entry first(.param .u64 p) { .reg .u64 a, b; ld.param.u64 a, [p]; ld.global.u64 b, [a];
  call (b), __cuda_sm20_div_u64, (b, 7); call (b), __cuda_sm20_div_u64, (b, 3); st.global.u64 [a], b; ret; }
.visible .entry second(.param .u64 p) { .reg .u64 a, b; .reg .b32 c; ld.param.u64 a, [p]; ld.global.u64 b, [a];
  call (b), __cuda_sm20_div_u64, (b, 7); cvt.u32.u64 c, b; call (c), __cuda_sm70_votesync_aligned_ballot, (c, -1);
  st.global.u64 [a], b; st.global.b32 [a], c; ret; }
";

/// A weak function is emitted once after each kernel that calls it, and once in an object; a
/// template is never called.
#[test]
fn helpers_are_emitted_once() {
    let source = format!(".version 9.0\n.target sm_90\n.address_size 64\n{CALLS}");
    let output = compile(&source, &Options::new("sm_90")).unwrap_or_else(|d| panic!("{}", d[0].message));
    let names: Vec<&str> = output.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["second", "__cuda_sm20_div_u64", "first", "__cuda_sm20_div_u64"]);
    let object = compile(&source, &Options { relocatable: true, ..Options::new("sm_90") }).unwrap();
    let mut names: Vec<&str> = object.functions.iter().map(|f| f.name.as_str()).collect();
    names.sort();
    assert_eq!(names, ["__cuda_sm20_div_u64", "first", "second"]);
    // One weak symbol with its own section, as the linker requires.
    let file = object::File::parse(&*object.cubin).unwrap();
    let helper: Vec<_> = file.symbols().filter(|s| s.name() == Ok("__cuda_sm20_div_u64")).collect();
    let [helper] = &helper[..] else { panic!("{} symbols", helper.len()) };
    let section = helper.section_index().and_then(|at| file.section_by_index(at).ok()).unwrap();
    assert!(helper.is_weak() && helper.is_definition() && helper.size() == section.size());
    assert_eq!(section.name(), Ok(".text.__cuda_sm20_div_u64"));
    let templates = file.symbols().filter(|s| s.name().is_ok_and(|name| name.contains("votesync")));
    assert_eq!(templates.count(), 0);
}

/// A module's declaration of a helper is checked against its row; unimplemented helpers are
/// rejected by name; a module's own definition takes precedence.
#[test]
fn wrong_declarations_are_refused() {
    let text = |declared: &str, body: &str| {
        format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n{declared}\n.visible .entry k() {{ .reg .b64 a; .reg .b32 b; mov.b64 a, 6; mov.b32 b, 1; {body} ret; }}\n"
        )
    };
    let message =
        |source: &str| compile(source, &Options::new("sm_90")).err().map(|d| d[0].message.clone()).unwrap_or_default();
    let short =
        text(".extern .func (.reg .u64 r) __cuda_sm20_div_u64 (.reg .u64 x);", "call (a), __cuda_sm20_div_u64, (a);");
    assert_eq!(message(&short), "Arguments mismatch for helper '__cuda_sm20_div_u64'");
    let inline =
        text(".extern .func (.reg .b64 r) __cuda_sm70_query_activemask;", "call (a), __cuda_sm70_query_activemask;");
    assert_eq!(message(&inline), "Arguments mismatch for instruction 'call'");
    let planned = text(
        ".extern .func (.reg .b32 r) __cuda_sm10x_tcgen05_alloc_one_sm (.reg .u32 x, .reg .u32 y);",
        "call (b), __cuda_sm10x_tcgen05_alloc_one_sm, (b, b);",
    );
    assert_eq!(
        message(&planned),
        "Helper '__cuda_sm10x_tcgen05_alloc_one_sm' is not implemented: tcgen05.alloc is lowered in line"
    );
    let unknown =
        text(".extern .func (.reg .b32 r) __cuda_sm20_no_such (.reg .u32 x);", "call (b), __cuda_sm20_no_such, (b);");
    assert_eq!(message(&unknown), "Unresolved extern function '__cuda_sm20_no_such'");
    let own = text(
        ".weak .func (.reg .b64 r) __cuda_sm20_div_u64 (.reg .b64 x) { mov.b64 r, x; ret; }",
        "call (a), __cuda_sm20_div_u64, (a);",
    );
    assert_eq!(message(&own), "");
}
