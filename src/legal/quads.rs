//! Writes TEX_QUADS in full, after everything has its place: `ori/quads.rs` has its registers.
//!
//! All lanes of a square that has a lane which asks become active, also those that are elsewhere:
//! what these have in the registers that are written goes below their stack pointers and comes back
//! from there. Each lane is read for in turn: all four get its operands, the second and the fourth
//! one step by x further, the third and the fourth one by y, and the unit takes derivatives from
//! the difference. A lane that does not ask is read for with what another one has. Source: ptxas
//! 13.0.88 output, which keeps such registers in functions, and does not in kernels.

use crate::analysis::PassCx;
use crate::arrays::Each;
use crate::ori::mods::*;
use crate::ori::quads::*;
use crate::ori::{Code, File, Function, InstId, Operand};
use crate::tables::encoding::sr;
use crate::tables::{Mod, Op, Role, value};

/// Lanes of a square; of the number of a lane, what is not its place there; and the bits of both
/// that SHFL takes.
const LANES: u16 = 4;
const SQUARE: u32 = 0x1c;
const SEGMENT: u32 = 0x1c03;
/// `a & !b`
const LUT_WITHOUT: u8 = 0x30;
const LUT_OR: u8 = 0xfc;
/// Most words that both operands of a read share evenly.
const MOST_SPREAD: u16 = 4;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let any = |f: &Function| f.layout().iter().flat_map(|b| &f[*b]).any(|inst| f[*inst].op == Op::TEX_QUADS);
    if !any(cx.function) {
        return;
    }
    let target = cx.function.target();
    let f = std::mem::replace(cx.function, Function::new("", target));
    let entry = f.entry();
    let mut code = Code { f, block: entry, guard: Operand::NULL, line: 0, visible: 0, cold: Vec::new() };
    for block in code.f.layout().to_vec() {
        code.block = block;
        for inst in std::mem::take(&mut code.f[block]) {
            if code.f[inst].op == Op::TEX_QUADS {
                code.line = code.f[inst].line;
                Quads::new(&mut code, inst).write();
            } else {
                code.f.append(block, inst);
            }
        }
    }
    *cx.function = code.f;
}

/// A read that is being written.
struct Quads<'a> {
    code: &'a mut Code,
    read: InstId,
    /// The layer and the coordinates, and how many of them are coordinates.
    words: u16,
    dimensions: u16,
    more: bool,
    /// Registers that the unit writes: of the first and of the second result.
    results: [u16; 2],
    asks: bool,
    absent: Operand,
}

impl Quads<'_> {
    fn new(code: &mut Code, read: InstId) -> Quads<'_> {
        let mods = code.f[read].mods;
        let shape = mods.get(Mod::Texdim);
        let cube = [value::texdim::CUBE, value::texdim::ARRAY_CUBE].contains(&shape);
        let layered = shape == value::texdim::ARRAY_CUBE;
        debug_assert!(cube || shape == value::texdim::_3D);
        let more = mods.get(Mod::TexOffset) != 0 || mods.get(Mod::Dc) != 0;
        let mask = code.f.imm_value(code.f.arg(read, Role::Mask)).unwrap_or(0);
        let (count, halves) = (mask.count_ones() as u16, mods.get(Mod::TexHalf) != 0);
        let part = |components: u16| if halves { components.div_ceil(2) } else { components };
        let results = [part(count.min(2)), part(count.saturating_sub(2))];
        let asks = code.f.extras(read).1.len() > usize::from(results[0] + results[1]);
        let absent = code.f.new_reg(File::P);
        code.f[absent].phys = Some(0);
        let words = 3 + u16::from(layered);
        Quads { code, read, words, dimensions: 3, more, results, asks, absent: Operand::reg(absent) }
    }

    fn reg(&mut self, number: u16) -> Operand {
        let reg = self.code.f.new_reg(File::R);
        self.code.f[reg].phys = Some(number);
        Operand::reg(reg)
    }

    /// Adjacent registers; one of them is no tuple.
    fn run(&mut self, first: u16, count: u16) -> Operand {
        if count < 2 {
            return if count == 0 { Operand::zero() } else { self.reg(first) };
        }
        let regs: Vec<_> = (first..first + count).filter_map(|number| self.reg(number).as_reg()).collect();
        Operand::vector(self.code.f.vector(&regs))
    }

    fn write(mut self) {
        self.begin();
        for lane in 0..LANES {
            self.choose(lane);
            self.give_operands();
            self.sample();
            self.take_results(lane);
        }
        self.end();
    }

    /// All that is written in this lane, with its place below the stack pointer.
    fn kept(&self) -> impl Iterator<Item = (i64, u16)> + use<> {
        (1..).map(|n| -4 * n).zip(WRITTEN)
    }

    /// The place of the predicate, and those of results.
    fn places(&self) -> (i64, Vec<(i64, u16)>) {
        let first = WRITTEN.len() as i64 + 1;
        let numbers = RESULTS..RESULTS + self.results[0] + self.results[1];
        let all = numbers.chain(self.asks.then_some(ABSENT));
        (-4 * first, (first + 1..).map(|n| -4 * n).zip(all).collect())
    }

    fn store(&mut self, (at, number): (i64, u16)) {
        let sp = Operand::reg(self.code.f.stack_register());
        let (offset, b) = (self.code.literal(at), self.reg(number));
        self.code.put(Op::STL, &[], &[(Role::A, sp), (Role::Off, offset), (Role::B, b)]);
    }

    fn load(&mut self, (at, number): (i64, u16)) {
        let sp = Operand::reg(self.code.f.stack_register());
        let (offset, d) = (self.code.literal(at), self.reg(number));
        self.code.put(Op::LDL, &[], &[(Role::D, d), (Role::A, sp), (Role::Off, offset)]);
    }

    fn barrier(&mut self) -> Operand {
        let barrier = self.code.f.new_reg(File::B);
        self.code.f[barrier].phys = Some(BARRIER);
        Operand::reg(barrier)
    }

    /// Activates whole squares and keeps what they have; then the lanes that ask are known.
    fn begin(&mut self) {
        let (active, barrier) = ((Mod::WarpState, value::warp_state::MACTIVE), self.barrier());
        self.code.put(Op::BMOV_B_STATE, &[active], &[(Role::B, barrier)]);
        let squares = (Mod::Pquad, value::pquad::PQUAD);
        self.code.put(Op::BMOV_STATE_B, &[active, squares], &[(Role::B, barrier)]);
        self.kept().for_each(|place| self.store(place));
        let (scratch, asking, one) = (self.reg(SCRATCH), self.reg(ASKING), self.code.imm(1));
        self.code.select(scratch, Operand::zero(), one, self.absent.inverted());
        self.store((self.places().0, SCRATCH));
        self.code.put(Op::BMOV_R, &[], &[(Role::D, asking), (Role::B, barrier)]);
        self.code.put(Op::S2R, &[], &[(Role::D, scratch), (Role::S, Operand::special(sr::LANEID))]);
        let [square, four, bits] = [SQUARE, u32::from(LANES), 0xf].each(|number| self.code.imm(number));
        self.code.and(scratch, scratch, square);
        self.code.shf(&SHF_R_U32_HI, asking, Operand::zero(), scratch, asking);
        self.code.and(asking, asking, bits);
        self.code.shf(&SHF_L, scratch, asking, four, Operand::zero());
        self.code.lop3(asking, asking, scratch, Operand::zero(), LUT_OR);
    }

    /// The lane that is read for: this one, or the next one that asks.
    fn choose(&mut self, lane: u16) {
        let [chosen, asking, scratch] = [LANE, ASKING, SCRATCH].each(|number| self.reg(number));
        let [amount, less] = [u32::from(lane), u32::MAX].each(|number| self.code.imm(number));
        self.code.shf(&SHF_R_U32_HI, chosen, Operand::zero(), amount, asking);
        self.code.add(scratch, chosen, less);
        self.code.lop3(chosen, chosen, scratch, Operand::zero(), LUT_WITHOUT);
        self.code.unary(Op::FLO, &[U32], chosen, chosen);
        self.code.add(chosen, chosen, amount);
    }

    /// Gives a register of the chosen lane to all.
    fn spread(&mut self, d: u16, a: u16) {
        let [d, a, lane] = [d, a, LANE].each(|number| self.reg(number));
        self.shuffle(d, a, lane);
    }

    fn shuffle(&mut self, d: Operand, a: Operand, lane: Operand) {
        let segment = self.code.imm(SEGMENT);
        self.code.put(Op::SHFL, &[SHFL_IDX], &[(Role::D, d), (Role::A, a), (Role::B, lane), (Role::C, segment)]);
    }

    /// The words of the read, those of the second operand last.
    fn handles(&self) -> u16 {
        let all = self.words + 1 + u16::from(self.more);
        if all <= MOST_SPREAD { WORDS + self.words } else { SECOND }
    }

    fn give_operands(&mut self) {
        for n in 0..self.words {
            self.spread(WORDS + n, COORDINATES + n);
        }
        let first = WORDS + self.words - self.dimensions;
        let signs = [value::quad_signs::ZPPPZPPP, value::quad_signs::ZPZPPPPP];
        for n in 0..self.dimensions {
            for (from, signs) in [BY_X, BY_Y].into_iter().zip(signs) {
                self.spread(SCRATCH, from + n);
                let (word, step) = (self.reg(first + n), self.reg(SCRATCH));
                let mods = [(Mod::Ndv, value::ndv::NDV), (Mod::QuadSigns, signs)];
                self.code.put(Op::FSWZADD, &mods, &[(Role::D, word), (Role::A, step), (Role::B, word)]);
            }
        }
        let handle = self.handles();
        self.spread(handle, HANDLE);
        if self.more {
            self.spread(handle + 1, MORE);
        }
        if self.code.f[self.read].mods.get(Mod::Texdim) != value::texdim::_3D {
            self.project(first);
        }
    }

    /// Divides the coordinates of a cube by the largest magnitude.
    fn project(&mut self, first: u16) {
        let (largest, words) = (self.reg(SCRATCH), [0, 1, 2].each(|n| self.reg(first + n)));
        for (a, b) in [(words[0], words[1]), (words[2], largest)] {
            let args =
                [(Role::D, largest), (Role::A, a.absolute()), (Role::B, b.absolute()), (Role::Pp, Operand::never())];
            self.code.put(Op::FMNMX, &[], &args);
        }
        self.code.mufu(MUFU_RCP, largest, largest);
        words.into_iter().for_each(|word| self.code.fmul(&[], word, word, largest));
    }

    fn sample(&mut self) {
        let data = self.code.f[self.read].mods;
        let mut mods = vec![(Mod::BindlessB, value::bindless_b::B), (Mod::Ndv, value::ndv::NDV)];
        let kinds = [Mod::Texdim, Mod::TexOffset, Mod::Dc, Mod::TexHalf];
        mods.extend(kinds.each(|kind| (kind, data.get(kind))));
        let all = self.words + 1 + u16::from(self.more);
        let (a, b) = if all <= MOST_SPREAD {
            mods.push((Mod::Scr, value::scr::SCR));
            let half = all.div_ceil(2);
            (self.run(WORDS, half), self.run(WORDS + half, all - half))
        } else {
            (self.run(WORDS, self.words), self.run(SECOND, all - self.words))
        };
        let (d, d2) = (self.run(WORDS, self.results[0]), self.run(WORDS + 2, self.results[1]));
        let mut args = vec![(Role::D2, d2), (Role::D, d), (Role::A, a), (Role::B, b)];
        args.extend(self.asks.then_some((Role::Pu, self.absent)));
        args.push((Role::Mask, self.code.f.arg(self.read, Role::Mask)));
        self.code.put(Op::TEX, &mods, &args);
    }

    /// Gives what the first lane of a square has read to the lane that is read for.
    fn take_results(&mut self, lane: u16) {
        if self.asks {
            let (scratch, one) = (self.reg(SCRATCH), self.code.imm(1));
            self.code.select(scratch, Operand::zero(), one, self.absent.inverted());
            self.take(ABSENT, SCRATCH, lane);
        }
        let [first, second] = self.results;
        let given = (WORDS..WORDS + first).chain(WORDS + 2..WORDS + 2 + second);
        for (n, from) in given.enumerate() {
            self.take(RESULTS + n as u16, from, lane);
        }
    }

    fn take(&mut self, to: u16, from: u16, lane: u16) {
        let (d, a) = (self.reg(to), self.reg(from));
        self.shuffle(a, a, Operand::zero());
        let lanes = self.code.literal(1 << lane);
        self.code.put(Op::MOV, &[], &[(Role::D, d), (Role::A, a), (Role::Lanes, lanes)]);
    }

    /// Gives the lanes back what they had, and the results to those that ask.
    fn end(&mut self) {
        let (predicate, results) = self.places();
        results.iter().for_each(|place| self.store(*place));
        self.load((predicate, SCRATCH));
        let scratch = self.reg(SCRATCH);
        self.code.isetp(self.absent, &[NE, AND, U32], scratch, Operand::zero());
        self.kept().for_each(|place| self.load(place));
        let (active, barrier) = ((Mod::WarpState, value::warp_state::MACTIVE), self.barrier());
        self.code.put(Op::BMOV_STATE_B, &[active], &[(Role::B, barrier)]);
        results.iter().for_each(|place| self.load(*place));
    }
}
