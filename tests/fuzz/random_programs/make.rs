//! Generates random programs whose results are fully determined by the ISA.
//!
//! From a seed and the forms of a target it makes a program (`tree.rs`). Every register is defined
//! before its use, every loop terminates, accesses stay within the thread's own bytes except for
//! additions to shared totals, warp operations name exactly the lanes that reach them, and results
//! that the ISA leaves open go only into slots of their own.

use super::compare::interpreted;
use super::crowd;
use super::families::{ALONE, Place, TOGETHER, one as family};
use super::group::{exchange, group};
use super::matrix::{Product, products};
use super::plain::{access, add_to_all, call, constant, leave, transfer};
use super::pool::{Judged, Piece, Pool, form_register, one};
use super::tensor_memory;
use super::tiles::{Tile, tiles};
use super::tree::{
    DEPTH, End, FUNCTIONS, Function, HIDDEN, KINDS, Node, PREDICATES, Program, SLOTS, STRIDE, Slot, Statement,
};
use super::warp_groups::THREADS;
use crate::random::Random;
use sassafras::compile::{Options, compile};
use sassafras::tables::Target;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The lanes that reach a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lanes {
    /// All of the block.
    All,
    /// The lanes in mask register `m` of this number.
    Mask(usize),
    Unknown,
}

/// The matrix statements of a target that the compiler accepts and the interpreter executes.
pub struct Matrices {
    target: &'static str,
    products: Vec<Product>,
    tiles: Vec<Tile>,
    /// Cached answers of `has`.
    known: RefCell<BTreeMap<usize, bool>>,
}

impl Matrices {
    pub fn new(target: &'static str) -> Matrices {
        Matrices { target, products: products(), tiles: tiles(), known: RefCell::default() }
    }

    fn statement(&self, random: &mut Random) -> String {
        loop {
            let number = random.below(self.products.len() + self.tiles.len());
            if self.has(number) {
                return self.one(number, random);
            }
        }
    }

    fn one(&self, number: usize, random: &mut Random) -> String {
        match number.checked_sub(self.products.len()) {
            None => self.products[number].statement(random),
            Some(tile) => self.tiles[tile].statement(random),
        }
    }

    /// Whether the target has a statement.
    fn has(&self, number: usize) -> bool {
        *self.known.borrow_mut().entry(number).or_insert_with(|| {
            let body = vec![Statement::Plain(self.one(number, &mut Random::new(1)))];
            let program = Program { body, threads: 32, lean: true, ..Program::default() };
            compile(&program.text(self.target, false), &Options::new(self.target)).is_ok()
                && interpreted(&program, self.target, &vec![0; program.bytes()]).is_ok()
        })
    }
}

/// Generates one program.
pub struct Maker<'p> {
    pub random: Random,
    pool: &'p Pool,
    matrices: &'p Matrices,
    slots: Vec<Slot>,
    /// How often each form was used.
    pub taken: Vec<usize>,
    place: Place,
    early: bool,
    /// Whether it is generating the kernel.
    kernel: bool,
    /// Functions that may be called: those from this index on.
    calls: usize,
    /// Whether it is generating the statements of a crowd.
    crowded: bool,
    /// Whether a statement allots tensor memory.
    allots: bool,
}

/// A random program, and the forms in it.
pub fn program(seed: u64, pool: &Pool, matrices: &Matrices) -> (Program, Vec<usize>) {
    let mut random = Random::new(seed);
    let size = 4 + random.below(30);
    let calls = random.below(FUNCTIONS + 4).min(FUNCTIONS);
    let early = random.below(5) == 0;
    let place = place(&mut random, matrices.target, early);
    let (slots, taken) = (Vec::new(), Vec::new());
    let (crowded, allots) = (false, false);
    let mut maker = Maker { random, pool, matrices, slots, taken, place, early, kernel: true, calls, crowded, allots };
    let lanes = if early { Lanes::Unknown } else { Lanes::All };
    let mut body = maker.start();
    body.extend(maker.list(size, 0, lanes));
    if maker.allots && maker.random.below(2) == 0 {
        body.push(Statement::Plain(tensor_memory::allots_no_more(&mut maker.random, &place)));
    }
    maker.kernel = false;
    let functions = (0..FUNCTIONS).map(|number| maker.function(number, calls)).collect();
    // Most programs load and store only the registers they name, which halves the time.
    let lean = maker.random.below(4) > 0;
    let Place { threads, cluster, .. } = place;
    let program = Program { body, functions, slots: maker.slots, threads, cluster, early, lean, renamed: false };
    (program, maker.taken)
}

/// The shape of a launch: a warp or several, in a block or in those of a cluster.
fn place(random: &mut Random, target: &str, early: bool) -> Place {
    let target = Target::by_name(target).expect("a target that programs are for");
    let alone = Place { target, threads: 32, cluster: 0 };
    let of_group = if alone.own() { 4 } else { 0 };
    match random.below(24) {
        0..=3 => Place { threads: 64, ..alone },
        4..=6 if !early && alone.from(90) => {
            let pair = if alone.own() { (THREADS, 2) } else { (64, 2) };
            let (threads, cluster) = [(32, 2), (32, 4), (64, 2), (32, 1), pair][random.below(5)];
            Place { threads, cluster, ..alone }
        }
        n if (7..7 + of_group).contains(&n) => Place { threads: THREADS, ..alone },
        _ => alone,
    }
}

impl Maker<'_> {
    /// A function may call those after it, and the last one itself.
    fn function(&mut self, number: usize, calls: usize) -> Function {
        if number < calls {
            return Function::default();
        }
        self.calls = number + 1;
        let size = 2 + self.random.below(10);
        let body = self.list(size, 1, Lanes::Unknown);
        Function { body, again: number + 1 == FUNCTIONS && self.random.below(2) == 0 }
    }

    /// The statements before any branch.
    fn start(&mut self) -> Vec<Statement> {
        if self.random.below(8) > 0 || self.place.threads > 32 || self.pool.start.is_empty() {
            return Vec::new();
        }
        let piece = one(&mut self.random, &self.pool.start).clone();
        vec![self.form(&piece, Lanes::All)]
    }

    fn list(&mut self, size: usize, depth: usize, lanes: Lanes) -> Vec<Statement> {
        (0..size).map(|_| self.statement(depth, lanes)).collect()
    }

    fn statement(&mut self, depth: usize, lanes: Lanes) -> Statement {
        match self.random.below(48) {
            0..=2 if depth < DEPTH => self.branch(depth, lanes),
            3 | 4 if depth < DEPTH => self.repeated(depth, lanes),
            5 if depth < DEPTH => self.graph(depth),
            6..=8 => Statement::Plain(access(&mut self.random)),
            9 => Statement::Plain(transfer(&mut self.random)),
            10 | 11 if self.calls < FUNCTIONS => Statement::Plain(call(&mut self.random, self.calls)),
            12 => Statement::Plain(constant(&mut self.random)),
            13 if self.kernel => Statement::Plain(add_to_all(&mut self.random, self.early)),
            14 if !self.kernel || self.early => Statement::Plain(leave(&mut self.random, self.kernel)),
            15 if lanes == Lanes::All && self.kernel => {
                Statement::Plain(exchange(&mut self.random, self.place.threads))
            }
            16 | 17 if lanes == Lanes::All && self.kernel => {
                Statement::Plain(self.matrices.statement(&mut self.random))
            }
            24..=26 if lanes == Lanes::All && self.kernel => match family(&mut self.random, &self.place, &TOGETHER) {
                Some(text) => {
                    self.allots |= text.contains("tcgen05.alloc");
                    Statement::Plain(text)
                }
                None => Statement::Plain(transfer(&mut self.random)),
            },
            27 if self.kernel => match family(&mut self.random, &self.place, &ALONE) {
                Some(text) => Statement::Plain(text),
                None => Statement::Plain(transfer(&mut self.random)),
            },
            23 if !self.crowded => self.crowd(depth, lanes),
            18 if lanes != Lanes::Unknown => Statement::Plain(group(&mut self.random, lanes)),
            19..=22 if lanes == Lanes::All => {
                let list = if self.random.below(2) == 0 { &self.pool.masked } else { &self.pool.whole };
                let piece = one(&mut self.random, list).clone();
                self.form(&piece, lanes)
            }
            19..=22 if lanes != Lanes::Unknown => {
                let piece = one(&mut self.random, &self.pool.masked).clone();
                self.form(&piece, lanes)
            }
            _ => {
                let piece = one(&mut self.random, &self.pool.anywhere).clone();
                self.form(&piece, lanes)
            }
        }
    }

    fn branch(&mut self, depth: usize, lanes: Lanes) -> Statement {
        let (guard, yes, no) = (guard(&mut self.random), 1 + self.random.below(6 / (depth + 1)), self.random.below(3));
        let outer = match lanes {
            Lanes::All => Some(0),
            Lanes::Mask(m) => Some(m),
            Lanes::Unknown => None,
        };
        let mask = outer.filter(|_| self.random.below(2) == 0);
        let inner = mask.map_or(Lanes::Unknown, |m| Lanes::Mask(m + 1));
        let (yes, no) = (self.list(yes, depth + 1, inner), self.list(no, depth + 1, inner));
        Statement::If { guard, mask, yes, no }
    }

    fn repeated(&mut self, depth: usize, lanes: Lanes) -> Statement {
        let more = (self.random.below(2) == 0).then(|| (register(&mut self.random, 'r'), [1, 3][self.random.below(2)]));
        let (times, size) = (1 + self.random.below(3) as u32, 1 + self.random.below(6 / (depth + 1)));
        let lanes = if more.is_some() { Lanes::Unknown } else { lanes };
        Statement::Loop { times, more, body: self.list(size, depth + 1, lanes) }
    }

    /// Statements under register pressure; crowds share their names, so none is in another.
    fn crowd(&mut self, depth: usize, lanes: Lanes) -> Statement {
        self.crowded = true;
        let (size, statements) = (crowd::size(&mut self.random), 4 + self.random.below(12));
        let mut body = self.list(statements, depth, lanes);
        crowd::mixed(&mut body, size, &mut self.random);
        self.crowded = false;
        Statement::Crowd { size, body }
    }

    /// Blocks with arbitrary branches between them.
    fn graph(&mut self, depth: usize) -> Statement {
        let count = 2 + self.random.below(4);
        let node = |maker: &mut Self, number: usize| {
            let size = maker.random.below(3);
            let body = maker.list(size, depth + 1, Lanes::Unknown);
            let later = |random: &mut Random| number + 1 + random.below(count - number);
            let end = match maker.random.below(8) {
                0 => End::Next,
                1 => End::Jump(maker.random.below(count + 1)),
                2 | 3 => {
                    let to = if maker.random.below(2) == 0 { 2 } else { 4 };
                    let to = (0..to).map(|_| later(&mut maker.random)).collect();
                    End::Switch(register(&mut maker.random, 'r'), to)
                }
                _ => End::Branch(guard(&mut maker.random), maker.random.below(count + 1)),
            };
            Node { body, end }
        };
        Statement::Graph((0..count).map(|number| node(self, number)).collect())
    }

    /// A statement with a form, or a register copy if no form is allowed there.
    fn form(&mut self, piece: &Piece, lanes: Lanes) -> Statement {
        let open = piece.judged != Judged::Exact;
        // In a cluster it names another block's memory, or none.
        let elsewhere = ["mapa", "getctarank"].iter().any(|op| piece.text.contains(op));
        if self.place.cluster > 0 && elsewhere {
            return Statement::Plain(transfer(&mut self.random));
        }
        if piece.kernel && !self.kernel || piece.one_warp && self.place.threads > 32 || open && !self.kernel {
            return Statement::Plain(transfer(&mut self.random));
        }
        if open && self.slots.len() == SLOTS.2 {
            return Statement::Plain(transfer(&mut self.random));
        }
        self.taken.push(piece.number);
        if open {
            return self.apart(piece);
        }
        let mut used: Vec<String> = Vec::new();
        let random = &mut self.random;
        let mut text = piece.renamed(|kind, fresh| {
            let name = if fresh { another(random, kind, &used) } else { register(random, kind) };
            used.push(name.clone());
            name
        });
        text = in_lanes(&piece.text, text, lanes);
        if piece.text.starts_with('.') || piece.text.contains("; .reg") {
            text = format!("{{ {text} }}");
        }
        let guarded = piece.place == super::pool::Place::Anywhere && piece.single() && random.below(6) == 0;
        Statement::Plain(if guarded { format!("@{} {text}", guard(random)) } else { text })
    }

    /// A form with its own registers, whose results go into a slot.
    fn apart(&mut self, piece: &Piece) -> Statement {
        let slot = self.slots.len();
        self.slots.push(Slot { form: piece.text.clone(), judged: piece.judged });
        let (mut before, mut after) = (String::new(), String::new());
        let random = &mut self.random;
        let place = SLOTS.0 + SLOTS.1 * slot;
        let text = super::names::replaced(&piece.text, |word| {
            let (kind, number) = form_register(word)?;
            if word == "r9" || word == "d3" && piece.points() {
                return Some(if word == "r9" { "amount" } else { "scratch" }.to_string());
            }
            let own = format!("y{word}");
            let ty = KINDS.iter().find(|k| k.0 == kind).map_or("pred", |k| k.1);
            let copy = format!("mov.{ty} {own}, {};\n", register(random, kind));
            if !before.contains(&format!("{own},")) {
                before += &copy;
                if word == "f1" {
                    // The error bound of an angle function depends on the angle.
                    before += &format!("st.global.b32 [io+{}], {own};\n", place + SLOTS.1 - 8);
                }
                after += &kept(kind, word, number, place);
            }
            Some(own)
        });
        let hidden = if piece.judged == Judged::Not { HIDDEN } else { "" };
        let text = format!("{hidden}{before}{{ {text} }}\n{after}").trim_end().to_string();
        Statement::Apart(text)
    }
}

/// Stores a result into a slot at the offset that the judge of forms knows; for the first f32, also
/// the input.
fn kept(kind: char, word: &str, number: usize, slot: usize) -> String {
    let (first, width, ty) = match (kind, &word[..1]) {
        (_, "x" | "g") => return String::new(),
        ('r', _) => (0, 4, "b32"),
        ('d', _) => (16, 8, "b64"),
        ('f', _) => (48, 4, "f32"),
        ('e', _) => (64, 8, "f64"),
        ('h', _) => (96, 2, "b16"),
        _ if number < 3 => return String::new(),
        _ => {
            let at = slot + 100 + 4 * number;
            return format!("selp.b32 w, 1, 2, y{word};\nst.global.b32 [io+{at}], w;\n");
        }
    };
    let place = match number {
        4..=7 => number - 4,
        // A form whose result overwrites its first input.
        1 => 3,
        _ => return String::new(),
    };
    assert!(slot + first + width * place + width <= STRIDE);
    format!("st.global.{ty} [io+{}], y{word};\n", slot + first + width * place)
}

/// A warp form with the mask of the lanes that reach it.
fn in_lanes(form: &str, text: String, lanes: Lanes) -> String {
    let half = form.contains("0xffff;");
    let in_register = form.ends_with(",r3;") || form.ends_with(" r3;");
    let mask = match lanes {
        Lanes::Mask(m) => format!("m{m}"),
        _ => "m0".to_string(),
    };
    let Some((before, _)) = text.trim_end_matches(';').rsplit_once([',', ' ']) else { return text };
    let comma = if form.trim_end_matches(';').rsplit_once(',').is_some() { "," } else { " " };
    let masked = ["vote.", "match.", "redux.", "bar.warp", "elect."].iter().any(|op| form.starts_with(op));
    match lanes {
        _ if !masked => text,
        Lanes::All if half => {
            format!("{{ mov.u32 a, %laneid; setp.gt.u32 q, a, 15; @q bra HALF; {text} HALF: }}")
        }
        Lanes::All if !in_register => text,
        _ => format!("{before}{comma}{mask};"),
    }
}

/// A random register of a kind.
pub fn register(random: &mut Random, kind: char) -> String {
    format!("{kind}{}", random.below(count(kind)))
}

/// Number of registers of each kind.
fn count(kind: char) -> usize {
    KINDS.iter().find(|k| k.0 == kind).map_or(PREDICATES, |k| k.3)
}

/// A register different from some others; no form names more of a kind than programs have.
fn another(random: &mut Random, kind: char, used: &[String]) -> String {
    let all = (0..count(kind)).map(|n| format!("{kind}{n}"));
    let mut free: Vec<String> = all.filter(|name| !used.contains(name)).collect();
    free.swap_remove(random.below(free.len()))
}

#[test]
fn every_free_register_is_found() {
    let (mut random, mut used) = (Random::new(1), Vec::new());
    (0..count('e')).for_each(|_| used.push(another(&mut random, 'e', &used)));
    used.sort();
    assert_eq!(used, ["e0", "e1", "e2", "e3", "e4", "e5"]);
}

/// A predicate, negated or not.
pub fn guard(random: &mut Random) -> String {
    let sign = if random.below(2) == 0 { "!" } else { "" };
    sign.to_string() + &register(random, 'p')
}
