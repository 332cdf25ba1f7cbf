//! The forms of `tests/cases/lowering/forms.txt`, prepared for random programs.
//!
//! For each form of a target it says where the form is allowed and how its results are judged. An
//! exact form gives the same bits on every correct executor for any register values: instructions
//! in front of it remove the inputs for which the ISA leaves the result open (NaN payloads).

use super::compare::TARGETS;
use super::names::{names, register};
use crate::lowering_support::forms::{Form, forms};
use crate::random::Random;

/// How the results of a form are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Bit for bit; they may be used by any other statement.
    Exact,
    /// By the ISA's error bound, in a slot of their own.
    Bound,
    /// Not at all: the interpreter does not support it.
    Not,
}

/// Where a form is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Anywhere,
    /// Where all lanes of all warps are active.
    Whole,
    /// Also where only some lanes of a warp are active and their mask is known.
    Masked,
    /// At the start, before any warp diverges.
    Start,
}

/// A form for random programs.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Index among all forms.
    pub number: usize,
    pub text: String,
    pub place: Place,
    pub judged: Judged,
    /// Uses the kernel's parameter.
    pub kernel: bool,
    /// Requires blocks of 32 threads.
    pub one_warp: bool,
}

/// Parts of the texts of operations with an error bound.
const BOUND: [&str; 13] = [
    "approx",
    "div.full",
    "atom.add.f32",
    "ex2",
    "lg2",
    "tanh",
    "sin.",
    "cos.",
    "rsqrt",
    "rcp.approx",
    "sqrt.approx",
    "div.approx",
    "createpolicy",
];

/// The forms of one target, by where they are allowed.
#[derive(Default)]
pub struct Pool {
    pub anywhere: Vec<Piece>,
    pub whole: Vec<Piece>,
    pub masked: Vec<Piece>,
    pub start: Vec<Piece>,
}

/// All texts of the list, in order.
pub fn all() -> Vec<Form> {
    forms()
}

/// Whether a target has a form. An architecture-specific target also has those of its family.
fn has(target: &str, form: &Form) -> bool {
    form.on(target) || form.on(target.trim_end_matches('a'))
}

/// The forms of a target. A form is weighted by how few draws of targets have it, so that all forms
/// are drawn equally often.
pub fn pool(list: &[Form], target: &str) -> Pool {
    let mut pool = Pool::default();
    for (number, form) in list.iter().enumerate().filter(|(_, form)| has(target, form)) {
        let draws = TARGETS.iter().filter(|other| has(other, form)).count().max(1);
        let piece = piece(number, form);
        let list = match piece.place {
            Place::Anywhere => &mut pool.anywhere,
            Place::Whole => &mut pool.whole,
            Place::Masked => &mut pool.masked,
            Place::Start => &mut pool.start,
        };
        list.extend(vec![piece; TARGETS.len() / draws]);
    }
    pool
}

fn piece(number: usize, form: &Form) -> Piece {
    let text = form.text.as_str();
    let bound = BOUND.iter().any(|part| text.contains(part));
    let judged = match (form.interpreted, bound) {
        (false, _) => Judged::Not,
        (true, true) => Judged::Bound,
        (true, false) => Judged::Exact,
    };
    let one = text.matches(';').count() == 1;
    let masked = ["vote.", "match.", "redux.", "bar.warp", "elect."].iter().any(|op| text.starts_with(op));
    let place = match () {
        () if text.contains("activemask") => Place::Start,
        () if masked && one => Place::Masked,
        () if text.contains(".sync") || text.contains("bar.") || text.contains("barrier.") => Place::Whole,
        () => Place::Anywhere,
    };
    // A form listed as inexact for lanes outside its mask is exact here, where the mask is right.
    let judged = if place == Place::Masked { Judged::Exact } else { judged };
    let names = names(text);
    let kernel = names.iter().any(|name| name == "p") || reads_fixed(text);
    Piece {
        number,
        text: defined(text),
        place,
        judged,
        kernel,
        one_warp: text.contains("bar.arrive")
            || text.contains("barrier.arrive")
            || text.contains(",32,")
            || place == Place::Start
            || names.iter().any(|name| name == "t"),
    }
}

/// Reads memory that must not be written while the kernel runs.
fn reads_fixed(text: &str) -> bool {
    text.contains(".nc") || text.contains("ldu.")
}

/// A form, after instructions that remove inputs with an open result.
fn defined(text: &str) -> String {
    let inputs = |kinds: &str| -> Vec<String> {
        let input = |name: &String| {
            let kind = name.chars().next().unwrap_or(' ');
            name.len() == 2 && kinds.contains(kind) && matches!(name.as_bytes()[1], b'1'..=b'3')
        };
        names(text).into_iter().filter(input).collect()
    };
    let mut front = String::new();
    if (text.starts_with("abs.") || text.starts_with("neg.")) && !text.contains(".s") {
        inputs("f")
            .iter()
            .for_each(|f| front += &format!("testp.notanumber.f32 q,{f}; selp.f32 {f},0f3f800000,{f},q; "));
        inputs("gh").iter().for_each(|h| front += &format!("and.b16 {h},{h},0xbfff; "));
        inputs("x").iter().for_each(|x| front += &format!("and.b32 {x},{x},0xbfffbfff; "));
    }
    let integer = [".s16", ".u16", ".s32", ".u32", ".s64", ".u64"].iter().find(|ty| text.contains(*ty));
    if let Some(ty) = integer.filter(|_| text.contains("div.") || text.contains("rem.")) {
        // A division by zero, or with overflow, gives an unspecified value.
        for divisor in
            names(text).into_iter().filter(|name| form_register(name).is_some_and(|(kind, n)| kind != 'p' && n < 4))
        {
            let bits = &ty[2..];
            for bad in [0, -1] {
                front += &format!("setp.eq.s{bits} q,{divisor},{bad}; selp.b{bits} {divisor},3,{divisor},q; ");
            }
        }
    }
    let atomic = text.contains("atom.") || text.contains("red.");
    let bits = text.starts_with("mov.b64") || text.starts_with("st.") || text.starts_with("copysign.f64");
    if bits || atomic && text.contains(".f64") {
        // 64-bit NaNs have an open payload and must not become visible bit for bit.
        for e in inputs("e") {
            front += &format!("testp.finite.f64 q,{e}; selp.f64 {e},{e},0d3ff0000000000000,q; ");
        }
    }
    let place = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(place, _)| place);
    let space = ["global", "shared"]
        .iter()
        .find(|s| text.contains(&format!(".{s}")))
        .map_or(String::new(), |s| format!(".{s}"));
    match (place, inputs("e").first(), inputs("f").first()) {
        (Some(place), Some(e), _) if atomic && text.contains(".f64") => {
            front += &format!("st{space}.f64 [{place}],{e}; ")
        }
        (Some(place), _, Some(_)) if text.contains("atom.add.f32") => {
            return format!("{text} st{space}.b32 [{place}],r1;");
        }
        _ => {}
    }
    front + text
}

impl Piece {
    /// Its text with renamed registers: `pick` gets the kind letter and whether the register must
    /// differ from the earlier ones. Equal names stay equal.
    pub fn renamed(&self, mut pick: impl FnMut(char, bool) -> String) -> String {
        let several = self.text.matches(';').count() > 1;
        let fixed = reads_fixed(&self.text);
        let mut known: Vec<(String, String)> = Vec::new();
        super::names::replaced(&self.text, |word| {
            if fixed && (word == "io" || word == "d3") {
                return Some("fixed".to_string());
            }
            let (kind, number) = form_register(word)?;
            if word == "r9" {
                return Some("amount".to_string());
            }
            if word == "d3" && self.points() {
                return Some("scratch".to_string());
            }
            if let Some((_, new)) = known.iter().find(|(old, _)| old == word) {
                return Some(new.clone());
            }
            let new = pick(kind, several || number >= if kind == 'p' { 3 } else { 4 });
            known.push((word.to_string(), new.clone()));
            Some(new)
        })
    }

    /// `d3` is an address.
    pub fn points(&self) -> bool {
        let uses = self.text.contains("[d3");
        uses || ["isspacep", "mapa"].iter().any(|op| self.text.starts_with(op))
    }

    /// A single instruction without a guard.
    pub fn single(&self) -> bool {
        self.text.matches(';').count() == 1 && !self.text.starts_with(['@', '{', '.'])
    }
}

/// Kind and number of a register as forms name it; forms have two more kind letters than programs.
pub fn form_register(word: &str) -> Option<(char, usize)> {
    let usual = match word.chars().next()? {
        'x' => 'r',
        'g' => 'h',
        kind => kind,
    };
    (word.len() == 2).then(|| register(&format!("{usual}{}", &word[1..])))?
}

/// One of a list.
pub fn one<'t>(random: &mut Random, list: &'t [Piece]) -> &'t Piece {
    &list[random.below(list.len())]
}
