//! Lowers `tcgen05.*`: the allocation of tensor memory, its loads and stores.
//!
//! Allocation is software: the block keeps, in the part of shared memory that the system reserves,
//! which columns it has. A load or store is one instruction of a warp that names its place by a
//! uniform register. Source: ptxas 13.0.88 output for each form.

use super::builder::{Builder, Lowered, Refusal};
use super::memory::address::{Place, Window};
use super::memory::memory_model::Order;
use super::wgmma::named;
use crate::arrays::Each;
use crate::ori::build::int::LUT_AND_3;
use crate::ori::mods::*;
use crate::ori::{File, InstId, Operand};
use crate::ptx::ast;
use crate::tables::elf::{ElfTarget, RelocRole};
use crate::tables::ptx::{AtomOp, CtaGroup, ScalarType, Space, TensorShape};
use crate::tables::{Mod, Op, Role, value};

/// Columns of a unit of allocation, as a power of two.
const UNIT: u32 = 5;
/// What the block keeps: masks of its units and of the first units of its allocations, and a byte
/// that says that it allocates no more, or that it had all of the memory.
const UNITS: i64 = 0x14;
const FIRSTS: i64 = 0x18;
const PERMIT: i64 = 0x1c;
const CLOSED: u32 = 1;
const EXCLUSIVE: u32 = 2;
/// The columns of an address in tensor memory.
const COLUMNS: u32 = 0xffff;
/// Nanoseconds between two attempts to allocate.
const PAUSE: u32 = 100;
/// What ptxas has DEPBAR wait for before it allocates.
const BEFORE_ALLOCATION: i64 = 0x36;
/// What ptxas gives back where a block allocates no more.
const POOL: i64 = 0x80;
/// Uniform registers of the operands: written right before each use, whichever lanes run.
pub(super) const PLACE: [u16; 1] = [8];
const FOUND: [u16; 1] = [9];
/// The uniform predicate of the operands.
const FLAG: u16 = 0;
/// Truth table of the complement of the first source.
const NOT: u8 = 0x0f;

/// The operands of `tcgen05.alloc`.
pub(super) struct Request {
    /// Where the first column is written.
    pub to: Place,
    /// Number of columns.
    pub count: Operand,
    /// Whether a lane is the one that writes.
    pub chosen: Operand,
    /// Whether the block allocates no more.
    pub never: Operand,
}

impl Builder<'_> {
    /// `tcgen05.alloc`
    pub fn allocate_tensor_memory(&mut self, inst: &ast::Instruction) -> Lowered {
        if two_blocks(inst) {
            return self.allocate_in_pair(inst);
        }
        self.one_for_all(|b| {
            let Request { to, count, chosen, never } = b.allocation_request(inst)?;
            let [late, open, end] = [(); 3].each(|()| b.f.new_block());
            b.branch_if(never, late, open);
            let (units, ones) = b.column_units(count);
            let unit = b.find_units(units, inst);
            b.keep_units(to, ones, unit, chosen)?;
            b.note_exclusive(inst, chosen)?;
            b.enter_after(end, late);
            b.refuse_allocation(to, chosen)?;
            b.enter(end);
            Ok(())
        })
    }

    /// What an allocation asks for, and whether the block allocates no more.
    pub(super) fn allocation_request(&mut self, inst: &ast::Instruction) -> Lowered<Request> {
        let to = self.shared_place(&inst.operands[0], inst.mods.space)?;
        let count = self.columns(inst)?;
        let (chosen, permit, never) = (self.chosen(), self.kept(PERMIT, SIZE_U8)?, self.temp_pred());
        let closed = self.imm(CLOSED);
        self.isetp(never, &[EQ, AND, U32], permit, closed);
        Ok(Request { to, count, chosen, never })
    }

    /// The columns that an instruction names, or all that there are.
    fn columns(&mut self, inst: &ast::Instruction) -> Lowered<Operand> {
        if !inst.mods.exclusive {
            return self.source_word(&inst.operands[1], ScalarType::U32);
        }
        let all = self.target.tensor_columns();
        Ok(self.imm(all))
    }

    /// Says, after an allocation of all columns, that there was one.
    pub(super) fn note_exclusive(&mut self, inst: &ast::Instruction, chosen: Operand) -> Lowered {
        if inst.mods.exclusive { self.permit(EXCLUSIVE, chosen) } else { Ok(()) }
    }

    fn permit(&mut self, state: u32, chosen: Operand) -> Lowered {
        let (base, at, state) = (self.partition()?, self.literal(PERMIT), self.imm(state));
        let state = self.in_reg(state);
        let args = [(Role::A, base), (Role::Off, at), (Role::B, state)];
        let store = self.put_if(chosen, Op::STS, &[SIZE_U8], &args);
        self.f[store].ordered = true;
        Ok(())
    }

    /// Notes units as allocated, and writes the first column of them to where the program wants it.
    pub(super) fn keep_units(&mut self, to: Place, ones: Operand, unit: Operand, chosen: Operand) -> Lowered {
        let (all, first, column) = (self.temp(), self.temp(), self.temp());
        self.shf(&SHF_L, all, ones, unit, Operand::zero());
        let one = self.imm(1);
        let one = self.in_reg(one);
        self.shf(&SHF_L, first, one, unit, Operand::zero());
        let amount = self.imm(UNIT);
        self.shf(&SHF_L, column, unit, amount, Operand::zero());
        self.keep(AOP_OR, UNITS, all, chosen)?;
        self.keep(AOP_OR, FIRSTS, first, chosen)?;
        self.put_word(chosen, to, column);
        Ok(())
    }

    /// What becomes of an allocation after the block has given its permit up.
    pub(super) fn refuse_allocation(&mut self, to: Place, chosen: Operand) -> Lowered {
        let none = self.imm(u32::MAX);
        let none = self.in_reg(none);
        self.put_word(chosen, to, none);
        self.trap()
    }

    /// `tcgen05.dealloc`
    pub fn release_tensor_memory(&mut self, inst: &ast::Instruction) -> Lowered {
        self.one_for_all(|b| {
            let from = b.source_word(&inst.operands[0], ScalarType::U32)?;
            let count = b.columns(inst)?;
            let chosen = b.chosen();
            let (_, ones) = b.column_units(count);
            let (columns, unit, all, first) = (b.temp(), b.temp(), b.temp(), b.temp());
            let (mask, amount, one) = (b.imm(COLUMNS), b.imm(UNIT), b.imm(1));
            let from = b.in_reg(from);
            b.and(columns, from, mask);
            b.shf(&SHF_R_U32_HI, unit, Operand::zero(), amount, columns);
            b.shf(&SHF_L, all, ones, unit, Operand::zero());
            let one = b.in_reg(one);
            b.shf(&SHF_L, first, one, unit, Operand::zero());
            let [wrong, end] = [(); 2].each(|()| b.f.new_block());
            for (at, bits) in [(UNITS, all), (FIRSTS, first)] {
                let (held, lacks, right) = (b.kept(at, SIZE_32)?, b.temp_pred(), b.f.new_block());
                let there = b.temp();
                b.and(there, held, bits);
                b.isetp(lacks, &[NE, AND, U32], there, bits);
                b.branch_if(lacks, wrong, right);
            }
            let (units, firsts) = (b.temp(), b.temp());
            b.lop3(units, all, Operand::zero(), Operand::zero(), NOT);
            b.lop3(firsts, first, Operand::zero(), Operand::zero(), NOT);
            let left = b.uniform(&PLACE, &[units]);
            let and = (Mod::SwsOp, value::sws_op::AND);
            b.put(Op::TCATOMSWS, &[and], &[(Role::D, Operand::zero()), (Role::A, left)]);
            b.keep(AOP_AND, UNITS, units, chosen)?;
            b.keep(AOP_AND, FIRSTS, firsts, chosen)?;
            b.enter_after(end, wrong);
            b.trap()?;
            b.enter(end);
            Ok(())
        })
    }

    /// `tcgen05.relinquish_alloc_permit`
    pub fn close_tensor_memory(&mut self) -> Lowered {
        self.one_for_all(|b| {
            let chosen = b.chosen();
            let pool = b.literal(POOL);
            b.put(Op::VIRTCOUNT, &[], &[(Role::A, pool)]);
            b.permit(CLOSED, chosen)
        })
    }

    /// Whether this is the lane that acts for its warp.
    pub(super) fn chosen(&mut self) -> Operand {
        self.all_lanes();
        let chosen = self.temp_pred();
        self.put(Op::ELECT, &[], &[(Role::Pu, chosen)]);
        chosen
    }

    /// The part of the reserved shared memory that tells what the block has allocated.
    pub(super) fn partition(&mut self) -> Lowered<Operand> {
        let elf = ElfTarget::of_sm(self.target.sm).ok_or(Refusal::NotBuilt)?;
        let (symbol, at) = elf.tensor_partition().ok_or(Refusal::NotBuilt)?;
        let base = if self.globals.object { self.linked(RelocRole::Shared, symbol, 0) } else { self.imm(at as u32) };
        let (window, sum) = (self.shared_window(), self.temp());
        self.add(sum, window, base);
        Ok(sum)
    }

    /// A word or byte of what the block keeps.
    pub(super) fn kept(&mut self, at: i64, size: M) -> Lowered<Operand> {
        let (base, d) = (self.partition()?, self.temp());
        let order = Order { strong: true, ..Order::default() };
        self.load_word(d, size, Place { window: Window::Shared, base, offset: at }, &order)?;
        Ok(d)
    }

    /// Changes what the block keeps, in one lane.
    pub(super) fn keep(&mut self, how: M, at: i64, bits: Operand, lane: Operand) -> Lowered {
        let (base, at) = (self.partition()?, self.literal(at));
        let args = [(Role::D, Operand::zero()), (Role::A, base), (Role::Off, at), (Role::B, bits)];
        self.put_if(lane, Op::ATOMS, &[how, SIZE_32], &args);
        Ok(())
    }

    /// Stores a word to shared memory, in one lane.
    pub(super) fn put_word(&mut self, lane: Operand, to: Place, word: Operand) {
        let offset = self.literal(to.offset);
        let args = [(Role::A, to.base), (Role::Off, offset), (Role::B, word)];
        let store = self.put_if(lane, Op::STS, &[SIZE_32], &args);
        self.f[store].ordered = true;
    }

    /// Units of so many columns, and as many ones.
    pub(super) fn column_units(&mut self, columns: Operand) -> (Operand, Operand) {
        if let Some(columns) = self.constant(columns) {
            let units = (columns as u32) >> UNIT;
            let ones = self.imm(u32::MAX.checked_shl(units).map_or(u32::MAX, |high| !high));
            return (self.imm(units), self.in_reg(ones));
        }
        let (units, high, ones) = (self.temp(), self.temp(), self.temp());
        let (amount, all) = (self.imm(UNIT), self.imm(u32::MAX));
        self.shf(&SHF_R_U32_HI, units, Operand::zero(), amount, columns);
        let all = self.in_reg(all);
        self.shf(&SHF_L, high, all, units, Operand::zero());
        self.lop3(ones, high, Operand::zero(), Operand::zero(), NOT);
        (units, ones)
    }

    /// Allocates units, in one block or in two, waiting until there are so many side by side;
    /// returns the first. All of them together need not be a power of two.
    pub(super) fn find_units(&mut self, units: Operand, inst: &ast::Instruction) -> Operand {
        let [turn, again, done] = [(); 3].each(|()| self.f.new_block());
        self.enter(turn);
        let (board, left) = (self.literal(0), self.literal(BEFORE_ALLOCATION));
        self.put(Op::DEPBAR, &[LE_COUNT], &[(Role::Sb, board), (Role::N, left)]);
        let wanted = self.uniform(&PLACE, &[units]);
        let (flag, found) = (self.uniform_flag(), self.uniform_place(&FOUND));
        let mut mods = vec![(Mod::SwsFind, value::sws_find::FIND_AND_SET)];
        mods.extend((!inst.mods.exclusive).then_some((Mod::SwsAlign, value::sws_align::ALIGN)));
        mods.extend(two_blocks(inst).then_some((Mod::Cta2, value::cta2::_2CTA)));
        self.put(Op::TCATOMSWS, &mods, &[(Role::Pu, flag), (Role::D, found), (Role::A, wanted)]);
        let (unit, there) = (self.temp(), self.temp_pred());
        self.put(Op::MOV, &[], &[(Role::D, unit), (Role::A, found)]);
        self.plop3(there, [Operand::always(), Operand::always(), flag], LUT_AND_3);
        self.branch_if(there, done, again);
        let pause = self.imm(PAUSE);
        let pause = self.in_reg(pause);
        self.put(Op::NANOSLEEP, &[], &[(Role::A, pause)]);
        self.enter_after(turn, done);
        unit
    }

    pub(super) fn uniform_flag(&mut self) -> Operand {
        let flag = self.f.new_reg(File::UP);
        self.f[flag].phys = Some(FLAG);
        Operand::reg(flag)
    }

    /// A uniform register of this number, to be written.
    fn uniform_place(&mut self, numbers: &[u16; 1]) -> Operand {
        let reg = self.f.new_reg(File::UR);
        self.f[reg].phys = Some(numbers[0]);
        Operand::reg(reg)
    }
}

/// Modifiers of LDTM and STTM.
fn shape_mods(inst: &ast::Instruction) -> Lowered<Vec<M>> {
    let m = &inst.mods;
    let shape = match m.tensor_shape.ok_or(Refusal::NotBuilt)? {
        TensorShape::D32x32b => "",
        TensorShape::D16x64b => "16dp64bit",
        TensorShape::D16x128b => "16dp128bit",
        TensorShape::D16x256b => "16dp256bit",
        TensorShape::D16x32bx2 => "16dp32bit_t0_t15",
    };
    let count = match m.tensor_count.ok_or(Refusal::NotBuilt)?.name() {
        "x1" => "",
        count => count,
    };
    let mut mods = vec![
        named(Mod::TmShape, shape).ok_or(Refusal::NotBuilt)?,
        named(Mod::TmCount, count).ok_or(Refusal::NotBuilt)?,
    ];
    mods.extend(m.tensor_pack.then_some((Mod::TmPack, value::tm_pack::PACK16BIT)));
    mods.extend(m.tensor_unpack.then_some((Mod::TmExpand, value::tm_expand::EXPAND16BIT)));
    Ok(mods)
}

/// What LDTM.STAT looks for.
fn extreme_mods(inst: &ast::Instruction) -> Lowered<Vec<M>> {
    let m = &inst.mods;
    let which = match (m.atom_op, m.abs) {
        (Some(AtomOp::Max), false) => "MAX",
        (Some(AtomOp::Max), true) => "MAXABS",
        (Some(AtomOp::Min), false) => "MIN",
        (Some(AtomOp::Min), true) => "MINABS",
        _ => return Err(Refusal::NotBuilt),
    };
    let number = match inst.types.first() {
        Some(ScalarType::F32) => "F32",
        Some(ScalarType::S32) => "S32",
        _ => "",
    };
    let named = |kind, text| named(kind, text).ok_or(Refusal::NotBuilt);
    let nan = if m.nan { "NAN" } else { "" };
    Ok(vec![
        (Mod::TmStat, value::tm_stat::STAT),
        named(Mod::TmExtreme, which)?,
        named(Mod::TmNumber, number)?,
        named(Mod::Nan, nan)?,
    ])
}

/// The same for the second half of the lanes.
fn upper_half(mods: &[M]) -> Lowered<Vec<M>> {
    let shape = named(Mod::TmShape, "16dp32bit_t16_t31").ok_or(Refusal::NotBuilt)?;
    Ok(mods.iter().map(|m| if m.0 == Mod::TmShape { shape } else { *m }).collect())
}

impl Builder<'_> {
    /// `tcgen05.ld` and `tcgen05.ld.red`
    pub fn load_tensor_memory(&mut self, inst: &ast::Instruction) -> Lowered {
        let mut mods = shape_mods(inst)?;
        let (best, rest) = match inst.mods.atom_op {
            Some(_) => (Some(&inst.operands[1]), &inst.operands[2..]),
            None => (None, &inst.operands[1..]),
        };
        if best.is_some() {
            mods.extend(extreme_mods(inst)?);
        }
        self.one_for_all(|b| {
            b.all_lanes();
            let (place, offset) = b.tensor_place(&rest[0])?;
            let mut to = b.fragment_words(&inst.operands[0], ScalarType::B32)?;
            let (vector, mut words) = b.temp_vector(to.len());
            let d = if words.len() == 1 { words[0] } else { vector };
            let found = match best {
                Some(best) => {
                    to.extend(b.fragment_words(best, ScalarType::B32)?);
                    let found = b.temp();
                    words.push(found);
                    Some(found)
                }
                None => None,
            };
            b.load_piece(&mods, place, offset, [found, Some(d)]);
            if inst.mods.tensor_shape == Some(TensorShape::D16x32bx2) {
                let apart = b.constant_operand(&rest[1])? as i32;
                let upper = b.load_piece(&upper_half(&mods)?, place, offset + i64::from(apart), [found, Some(d)]);
                // It leaves the lower lanes as they are, as an instruction with a guard may.
                b.f[upper].guard = Operand::always();
            }
            to.into_iter().zip(words).for_each(|(to, word)| b.copy(to, word));
            Ok(())
        })
    }

    /// Loads registers, and the extreme of each thread's if there is a place for it.
    fn load_piece(&mut self, mods: &[M], place: Operand, offset: i64, to: [Option<Operand>; 2]) -> InstId {
        let offset = self.literal(offset);
        let mut args: Vec<(Role, Operand)> =
            [Role::D2, Role::D].into_iter().zip(to).filter_map(|(role, to)| Some((role, to?))).collect();
        args.extend([(Role::Ub, place), (Role::Off, offset)]);
        let load = self.put(Op::LDTM, mods, &args);
        self.f[load].ordered = true;
        load
    }

    /// `tcgen05.st`
    pub fn store_tensor_memory(&mut self, inst: &ast::Instruction) -> Lowered {
        let mods = shape_mods(inst)?;
        self.one_for_all(|b| {
            b.all_lanes();
            let (place, offset) = b.tensor_place(&inst.operands[0])?;
            let two = inst.mods.tensor_shape == Some(TensorShape::D16x32bx2);
            let words = b.fragment_words(&inst.operands[if two { 2 } else { 1 }], ScalarType::B32)?;
            let from = b.fragment_of(&words, words.len());
            let mut pieces = vec![(mods.clone(), offset)];
            if two {
                let apart = b.constant_operand(&inst.operands[1])? as i32;
                pieces.push((upper_half(&mods)?, offset + i64::from(apart)));
            }
            for (mods, offset) in pieces {
                let offset = b.literal(offset);
                let store = b.put(Op::STTM, &mods, &[(Role::Ub, place), (Role::Off, offset), (Role::B, from)]);
                b.f[store].ordered = true;
            }
            Ok(())
        })
    }

    /// `tcgen05.wait::ld`: an instruction that waits for the results of all loads.
    pub fn wait_tensor_loads(&mut self) -> Lowered {
        self.put(Op::ACQUIRE, &[], &[]);
        Ok(())
    }

    /// `tcgen05.wait::st`
    pub fn wait_tensor_stores(&mut self) -> Lowered {
        self.put(Op::FENCE_T, &[], &[]);
        Ok(())
    }

    /// An address in tensor memory: a uniform register, and an offset.
    fn tensor_place(&mut self, operand: &ast::Operand) -> Lowered<(Operand, i64)> {
        let (word, offset) = self.tensor_word(operand)?;
        Ok((self.uniform(&PLACE, &[word]), offset))
    }

    pub(super) fn tensor_word(&mut self, operand: &ast::Operand) -> Lowered<(Operand, i64)> {
        let place = self.place(operand, Some(Space::Local))?;
        let word = if place.base == Operand::zero() { self.imm(0) } else { place.base };
        Ok((word, place.offset))
    }

    /// The same, as one word.
    pub(super) fn tensor_sum(&mut self, operand: &ast::Operand) -> Lowered<Operand> {
        let (word, offset) = self.tensor_word(operand)?;
        if offset == 0 {
            return Ok(word);
        }
        let (sum, amount) = (self.temp(), self.imm(offset as u32));
        self.add(sum, word, amount);
        Ok(sum)
    }
}

/// Whether two blocks do it together.
pub(super) fn two_blocks(inst: &ast::Instruction) -> bool {
    inst.mods.cta_group == Some(CtaGroup::CtaGroup2)
}
