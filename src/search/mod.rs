//! Search: compiles a function with several tunings and keeps the code that is estimated best.
//!
//! A step compiles the function once more with another value of one tunable
//! (`tables/tunables.ron`); what is better is where the next step starts. The judge is the
//! simulator's time model on the path that a warp is expected to take (`path`, `judge`). With a
//! count of steps the same input gives the same bytes; with seconds it depends on the clock.

mod judge;
mod path;

use crate::arrays::Each;
use crate::ori::Function;
use crate::pipeline::emit::Code;
use crate::sorted::SortedSet;
use crate::tables::{Tunable, Tuning};
use std::time::{Duration, Instant};

/// How long to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Most times that a function is compiled with another tuning.
    pub steps: u32,
    /// Most time for a function; `None`: as long as there are steps.
    pub time: Option<Duration>,
}

impl Effort {
    /// The effort for each of so many functions, of which so many are compiled at once.
    pub fn shared(self, functions: usize, threads: usize) -> Effort {
        let (functions, threads) = (functions.max(1) as u32, threads.clamp(1, functions.max(1)) as u32);
        Effort { time: self.time.map(|time| time * threads / functions), ..self }
    }
}

/// What a search found for a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Name of the function.
    pub function: String,
    /// The tuning of its code.
    pub tuning: Tuning,
    /// How often it was compiled with another one.
    pub steps: u32,
    /// Estimated cycles of a block with the tuning of the options, and with this one; none where it
    /// could not be compiled.
    pub cycles: [Option<u64>; 2],
    /// What was compared: those cycles times the cycles of its share of a full SM, in parts.
    pub times: [Option<u128>; 2],
}

/// Compiles a function with the tuning that is best within the effort. `compile` leaves it in
/// physical registers; with a quiet [`Voice`] it keeps no records.
///
/// # Errors
///
/// Those of `compile` with the tuning of the options, if none can be compiled.
pub fn run(
    function: &mut Function,
    effort: Effort,
    mut compile: impl FnMut(&mut Function, Voice) -> Result<Code, String>,
) -> (Result<Code, String>, Option<Found>) {
    if effort.steps == 0 {
        return (compile(function, Voice::Loud), None);
    }
    let start = Instant::now();
    let is_over = |steps: u32| steps >= effort.steps || effort.time.is_some_and(|most| start.elapsed() >= most);
    let mut trial = |tuning: Tuning| {
        let mut copy = function.clone();
        copy.attributes_mut().tuning = tuning;
        let code = compile(&mut copy, Voice::Quiet).ok()?;
        judge::score(&copy, &code)
    };
    let own = function.attributes().tuning;
    let first = trial(own);
    let (mut best, mut tuning, mut steps) = (first, own, 0);
    let mut tried = SortedSet::from([own]);
    let values = values();
    // Until no other value of any tunable is better.
    let mut since = 0;
    for (tunable, value) in values.iter().cycle() {
        let other = tuning.with(*tunable, *value);
        since += 1;
        if tried.insert(other) {
            if is_over(steps) {
                break;
            }
            steps += 1;
            let score = trial(other);
            if score.is_some() && (best.is_none() || score < best) {
                (best, tuning, since) = (score, other, 0);
            }
        }
        if since == values.len() {
            break;
        }
    }
    function.attributes_mut().tuning = tuning;
    let code = compile(function, Voice::Loud);
    let cycles = [first, best].each(|score| score.map(|score| score.block));
    let times = [first, best].each(|score| score.map(|score| score.time));
    (code, Some(Found { function: function.name().to_string(), tuning, steps, cycles, times }))
}

/// What is tried, in this order: the first value of each tunable, then the second, and its default
/// after those of the table.
fn values() -> Vec<(Tunable, u32)> {
    let of = |tunable: Tunable, place: usize| {
        let info = tunable.info();
        info.tried.iter().chain([&info.default]).nth(place).map(|value| (tunable, *value))
    };
    let most = Tunable::ALL.into_iter().map(|tunable| tunable.info().tried.len() + 1).max().unwrap_or(0);
    (0..most).flat_map(|place| Tunable::ALL.into_iter().filter_map(move |tunable| of(tunable, place))).collect()
}

/// Whether a compilation is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    Quiet,
    Loud,
}
