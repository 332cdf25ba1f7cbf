//! Matrix loads and stores in random programs.
//!
//! From the rows of `wmma`, `ldmatrix`, `stmatrix` and `movmatrix` in the PTX tables it makes
//! statements: lanes write lines of a matrix, the warp loads, multiplies and stores, and lanes read
//! their lines back. The warp synchronises between the lanes' accesses and its own. A `wmma`
//! fragment comes from `wmma.load` and goes only to `wmma`, because its layout is unspecified. Sums
//! are exact (`matrix.rs`).

use super::make::register;
use super::matrix::{FLOATS, Fragment, held, spelling};
use super::tree::{LOST, STRIDE};
use crate::random::Random;
use sassafras::tables::ptx::{FORMS, Form, Role};

/// The operations covered.
const OPS: [&str; 4] = ["ldmatrix", "stmatrix", "movmatrix", "wmma.mma"];
/// Separates the writes of lanes from the reads of others.
const MEET: &str = "bar.warp.sync 0xffffffff; ";
/// Stride of lines in bytes if they are not contiguous.
const PITCH: usize = 128;

/// A statement with matrices in memory.
#[derive(Clone, Debug)]
pub struct Tile {
    name: String,
    /// Number of registers of each fragment, the result first, and the type of the elements.
    fragments: Vec<Fragment>,
}

/// The statements of the tables: for each row a few choices of types and modifiers.
pub fn tiles() -> Vec<Tile> {
    let mut out: Vec<Tile> = Vec::new();
    for form in FORMS.iter().filter(|form| OPS.contains(&form.op.name())) {
        let mut random = Random::new(out.len() as u64);
        for _ in 0..8 {
            let tile = tile(form, &mut random);
            if out.iter().all(|other| other.name != tile.name) {
                out.push(tile);
            }
        }
    }
    out
}

fn tile(form: &'static Form, random: &mut Random) -> Tile {
    let (name, types) = spelling(form, random);
    let all = form.args.iter().filter(|arg| matches!(arg.role, Role::Fdst | Role::Fsrc));
    // f16 `wmma.mma` names only the types of result and accumulator.
    let element = |n: usize| match (types.len(), n) {
        (2, 1 | 2) => "f16",
        (2, 3) => types[1].name(),
        _ => types.get(n).map_or("b16", |ty| ty.name()),
    };
    let fragments = all.enumerate().map(|(n, arg)| (arg.count, held(arg), element(n))).collect();
    Tile { name, fragments }
}

/// Layout and length of lines.
#[derive(Clone, Copy)]
struct Lines {
    by_row: bool,
    bytes: usize,
    pitch: usize,
}

/// The location of a statement's lines: the state space as matrix loads name it and as plain
/// accesses do.
#[derive(Clone, Copy)]
struct Place {
    of_matrices: &'static str,
    plain: &'static str,
    global: bool,
}

impl Place {
    fn any(random: &mut Random, shared: bool) -> Place {
        let [near, far] = [false, true].map(|global| move |of_matrices, plain| Place { of_matrices, plain, global });
        match random.below(if shared { 3 } else { 5 }) {
            0 => near(".shared", ".shared"),
            1 => near(".shared::cta", ".shared"),
            2 => near("", ".shared"),
            3 => far(".global", ".global"),
            _ => far("", ".global"),
        }
    }

    /// The address of the first line for matrix accesses (`TM`), and of a lane's own line (`TL`).
    fn addresses(self, pitch: usize) -> String {
        if self.global {
            return format!(
                "mul.wide.u32 TM, TN, {STRIDE}; sub.u64 TM, io, TM; add.u64 TM, TM, {0}; add.u64 TL, io, {0}; ",
                LOST.start
            );
        }
        let generic = if self.of_matrices.is_empty() { "cvta.shared.u64 TM, TM; " } else { "" };
        format!(
            "and.b32 a, t, -32; shl.b32 a, a, 7; mov.u32 w, tile; add.u32 a, a, w; cvt.u64.u32 TM, a; \
             mad.lo.u32 a, TN, {pitch}, a; cvt.u64.u32 TL, a; {generic}"
        )
    }

    /// Each lane writes its line: four words from registers, repeated.
    fn fill(self, random: &mut Random, element: &str, bytes: usize) -> String {
        let float = FLOATS.iter().find(|f| f.0 == element);
        let mut text = String::new();
        for i in 0..4 {
            text += &match float {
                Some(("f64", ..)) if i % 2 == 0 => format!("mov.b32 TW{i}, 0; "),
                Some((_, mask, base)) => {
                    let (mask, base) = if element == "f64" { (mask >> 32, base >> 32) } else { (*mask, *base) };
                    format!("and.b32 TW{i}, {}, {mask:#x}; or.b32 TW{i}, TW{i}, {base:#x}; ", register(random, 'r'))
                }
                None => format!("mov.b32 TW{i}, {}; ", register(random, 'r')),
            };
        }
        for at in (0..bytes).step_by(16) {
            let list = if at.is_multiple_of(32) { "TW0, TW1, TW2, TW3" } else { "TW2, TW3, TW0, TW1" };
            text += &match bytes - at {
                8 => format!("st{}.v2.b32 [TL+{at}], {{TW0, TW1}}; ", self.plain),
                _ => format!("st{}.v4.b32 [TL+{at}], {{{list}}}; ", self.plain),
            };
        }
        text + MEET
    }

    /// Each lane reads two words of its line; the next statement uses other lines.
    fn read(self, random: &mut Random, bytes: usize) -> String {
        let mut one = || {
            let (at, r) = (4 * random.below(bytes / 4), register(random, 'r'));
            format!("ld{}.b32 w, [TL+{at}]; xor.b32 {r}, {r}, w; ", self.plain)
        };
        [MEET, &one(), &one(), MEET].concat()
    }
}

impl Tile {
    /// The statement with registers of the program.
    pub fn statement(&self, random: &mut Random) -> String {
        let mut text = "{ .reg .b32 TN, TW<4>; .reg .b64 TM, TL; mov.u32 TN, %laneid; ".to_string();
        for (n, (count, ty, _)) in self.fragments.iter().enumerate() {
            let ty = if ["f32", "f64"].contains(&ty.name()) { ty.name() } else { "b32" };
            text += &format!(".reg .{ty} T{n}_<{count}>; ");
        }
        let rest = match self.name.split_once('.') {
            Some(("movmatrix", _)) => {
                format!("{} {}, {}; ", self.name, register(random, 'r'), register(random, 'r'))
            }
            Some(("wmma", _)) => self.product(random),
            _ => self.lines(random),
        };
        text + &rest + "}"
    }

    fn list(&self, n: usize) -> String {
        let all: Vec<String> = (0..self.fragments[n].0).map(|i| format!("T{n}_{i}")).collect();
        format!("{{{}}}", all.join(", "))
    }

    /// `ldmatrix` and `stmatrix`: the lanes give the line addresses in any order.
    fn lines(&self, random: &mut Random) -> String {
        let (pitch, turn) = ([16, 48, PITCH][random.below(3)], random.below(32));
        let mut place = Place::any(random, true);
        place.of_matrices = if self.name.contains(".shared") { ".shared" } else { "" };
        let mut text = place.addresses(pitch);
        text += &format!("xor.b32 a, TN, {turn}; mul.wide.u32 b, a, {pitch}; add.u64 TM, TM, b; ");
        text += &place.fill(random, "b32", 16);
        let registers = usize::from(self.fragments[0].0);
        if self.name.starts_with("ldmatrix") {
            text += &format!("{} {}, [TM]; {MEET}", self.name, self.list(0));
            for i in 0..registers {
                text += &format!("xor.b32 {0}, {0}, T0_{i}; ", register(random, 'r'));
            }
            return text;
        }
        for i in 0..registers {
            text += &format!("mov.b32 T0_{i}, {}; ", register(random, 'r'));
        }
        text + &format!("{} [TM], {}; ", self.name, self.list(0)) + &place.read(random, 16)
    }

    /// Loads three matrices, multiplies and adds, and stores the result.
    fn product(&self, random: &mut Random) -> String {
        let words: Vec<&str> = self.name.split('.').collect();
        let shape = words.iter().find(|w| w.starts_with('m') && w.contains('k')).copied().unwrap_or_default();
        let sizes: Vec<usize> = shape.split(['m', 'n', 'k']).filter_map(|n| n.parse().ok()).collect();
        let (m, n, k) = (sizes[0], sizes[1], sizes[2]);
        let mut orders = words.iter().filter(|w| ["row", "col"].contains(w)).map(|w| *w == "row");
        let orders = [(); 2].map(|()| orders.next().unwrap_or(true));
        let place = Place::any(random, false);
        let mut text = String::new();
        for (fragment, part, rows, columns, order) in
            [(1, "load.a", m, k, Some(orders[0])), (2, "load.b", k, n, Some(orders[1])), (3, "load.c", m, n, None)]
        {
            let lines = self.order(random, place, fragment, (rows, columns), order);
            text += &place.addresses(lines.pitch);
            text += &place.fill(random, self.fragments[fragment].2, lines.bytes);
            let (name, stride) = self.part(part, place, fragment, shape, lines);
            text += &format!("{name} {}, [TM]{stride}; {MEET}", self.list(fragment));
        }
        text += &format!("{} {}, {}, {}, {}; ", self.name, self.list(0), self.list(1), self.list(2), self.list(3));
        let lines = self.order(random, place, 0, (m, n), None);
        text += &place.addresses(lines.pitch);
        text += &place.fill(random, "b32", lines.bytes);
        let (name, stride) = self.part("store.d", place, 0, shape, lines);
        text + &format!("{name} [TM], {}{stride}; ", self.list(0)) + &place.read(random, lines.bytes)
    }

    /// Lines of a matrix: row- or column-major, contiguous or with a stride.
    fn order(
        &self,
        random: &mut Random,
        place: Place,
        fragment: usize,
        size: (usize, usize),
        order: Option<bool>,
    ) -> Lines {
        let by_row = order.unwrap_or(random.below(2) == 0);
        let bytes = if by_row { size.1 } else { size.0 } * bits(self.fragments[fragment].2) / 8;
        let dense = random.below(2) == 0 && bytes >= 16 && !place.global;
        let pitch = if place.global { STRIDE } else { PITCH };
        Lines { by_row, bytes, pitch: if dense { bytes } else { pitch } }
    }

    /// The suffix of a load or store, and its stride in elements.
    fn part(&self, part: &str, place: Place, fragment: usize, shape: &str, lines: Lines) -> (String, String) {
        let (element, order) = (self.fragments[fragment].2, if lines.by_row { "row" } else { "col" });
        let name = format!("wmma.{part}.sync.aligned.{order}.{shape}{}.{element}", place.of_matrices);
        let dense = lines.pitch == lines.bytes;
        (name, if dense { String::new() } else { format!(", {}", lines.pitch * 8 / bits(element)) })
    }
}

/// Bits per element in memory.
fn bits(element: &str) -> usize {
    match element {
        "tf32" => 32,
        _ => element.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().unwrap_or(32),
    }
}
