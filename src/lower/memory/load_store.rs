//! Loads and stores in every state space: `ld` and `st` with their vector, ordering and cache
//! modifiers.
//!
//! Emits LDG, LD, LDS, LDL, LDC and the stores, and packs narrow vectors. One PTX access of up to
//! 128 bits is one memory instruction, except that a vector in a constant bank, where data races
//! cannot occur, is loaded word by word.

use super::address::{Place, Window};
use super::memory_model::Order;
use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::operand::is_signed;
use crate::ori::mods::*;
use crate::ori::{Kind, Listed, Operand};
use crate::ptx::ast::{self, OperandKind};
use crate::tables::memory::Access;
use crate::tables::ptx::ScalarType;
use crate::tables::{Op, Role};
use smallvec::SmallVec;

/// Modifiers of a memory instruction.
pub(crate) type AccessMods = SmallVec<[M; 6]>;

/// Unit in bytes of the offset of a 256-bit access, and the bound of its magnitude.
const WIDE_UNIT: i64 = 32;
const WIDE_REACH: i64 = 1 << 20;

/// The `size` modifier of a scalar access.
pub(crate) fn size_of(ty: ScalarType) -> Lowered<M> {
    Ok(match (ty.bits(), is_signed(ty)) {
        (8, false) => SIZE_U8,
        (8, true) => SIZE_S8,
        (16, false) => SIZE_U16,
        (16, true) => SIZE_S16,
        (32, _) => SIZE_32,
        (64, _) => SIZE_64,
        (128, _) => SIZE_128,
        _ => return Err(Refusal::NotBuilt),
    })
}

/// The size modifier that moves this many bits.
fn size_of_bits(bits: u32) -> Lowered<M> {
    size_of(match bits {
        8 => ScalarType::U8,
        16 => ScalarType::U16,
        32 => ScalarType::U32,
        64 => ScalarType::U64,
        128 => ScalarType::B128,
        _ => return Err(Refusal::NotBuilt),
    })
}

pub(crate) fn elements(operand: &ast::Operand) -> &[ast::Operand] {
    match &operand.kind {
        OperandKind::Vector(list) => list,
        _ => std::slice::from_ref(operand),
    }
}

impl Builder<'_> {
    /// `ld` and `ldu`
    pub fn load(&mut self, inst: &ast::Instruction) -> Lowered {
        if let Some((words, offset)) = self.words_at(&inst.operands[1]) {
            return self.load_words(inst, &words, offset);
        }
        let ty = inst.types[0];
        let bits = ty.bits() * elements(&inst.operands[0]).len() as u32;
        if let Some((words, offset)) = self.scattered(&inst.operands[1], bits) {
            let words = self.frame_words(words);
            return self.load_words(inst, &words, offset);
        }
        self.check_address_size(inst)?;
        let place = self.place(&inst.operands[1], inst.mods.space)?;
        let access = if inst.mods.non_coherent { Access::LdNc } else { Access::Ld };
        let order = self.order(access, inst, place.window)?;
        let parts = elements(&inst.operands[0]);
        if parts.len() == 1 {
            self.load_scalar(&parts[0], ty, place, &order)?;
        } else {
            self.load_vector(parts, ty, place, &order)?;
        }
        self.after(&order);
        Ok(())
    }

    fn check_address_size(&self, inst: &ast::Instruction) -> Lowered {
        if self.module.address_size != 64 {
            return Err(Refusal::At(inst.pos, "Addresses of 32 bits are not implemented".to_string()));
        }
        Ok(())
    }

    fn load_scalar(&mut self, to: &ast::Operand, ty: ScalarType, place: Place, order: &Order) -> Lowered {
        let d = self.dest(to)?;
        if ty.bits() == 128 {
            let Kind::Vector(vector) = d.kind() else { return Err(Refusal::NotBuilt) };
            let regs: Vec<Operand> = self.f.vector_regs(vector).iter().map(|r| Operand::reg(*r)).collect();
            return match place.window {
                Window::Bank(_) => self.load_pieces(&regs, 128, place, order),
                _ => self.load_values(d, SIZE_128, [128, 64], place, order),
            };
        }
        let wide = matches!(d.kind(), Kind::Vector(_));
        if wide == (ty.bits() == 64) {
            return self.load_word(d, size_of(ty)?, place, order);
        }
        let loaded = if ty.bits() == 64 { self.temp_pair() } else { self.temp() };
        self.load_word(loaded, size_of(ty)?, place, order)?;
        self.widen_into(d, loaded, ty);
        Ok(())
    }

    fn load_vector(&mut self, parts: &[ast::Operand], ty: ScalarType, place: Place, order: &Order) -> Lowered {
        let bits = ty.bits() * parts.len() as u32;
        let words = bits.div_ceil(32) as usize;
        let to = parts.iter().map(|part| self.dest(part)).collect::<Lowered<SmallVec<[Operand; 8]>>>()?;
        let single = to.iter().all(|to| to.as_reg().is_some() || *to == Operand::zero());
        if single && ty.bits() == 32 && bits < 256 && !self.guard.is_null() && !matches!(place.window, Window::Bank(_))
        {
            return self.load_over(&to, place, order);
        }
        let regs = if bits == 256 {
            self.load_wide(place, order)
        } else {
            let (vector, regs) = self.temp_vector(words);
            let whole = if words == 1 { regs[0] } else { vector };
            match place.window {
                Window::Bank(_) => self.load_pieces(&regs, bits, place, order)?,
                _ => self.load_values(whole, size_of_bits(bits)?, [bits, ty.bits()], place, order)?,
            }
            regs
        };
        self.scatter_parts(parts, ty, &regs)
    }

    /// Loads a vector of words under a guard over the old values, which stay where it is false, so
    /// that only the load needs the guard.
    fn load_over(&mut self, to: &[Operand], place: Place, order: &Order) -> Lowered {
        let (vector, regs) = self.temp_vector(to.len());
        let pairs = || to.iter().zip(&regs).filter(|(to, _)| to.as_reg().is_some());
        let guard = std::mem::replace(&mut self.guard, Operand::NULL);
        pairs().for_each(|(to, reg)| self.copy(*reg, *to));
        self.guard = guard;
        let whole = if regs.len() == 1 { regs[0] } else { vector };
        let bits = 32 * to.len() as u32;
        self.load_values(whole, size_of_bits(bits)?, [bits, 32], place, order)?;
        self.guard = Operand::NULL;
        pairs().for_each(|(to, reg)| self.copy(*to, *reg));
        self.guard = guard;
        Ok(())
    }

    /// Writes the elements of a vector from the words that were loaded.
    pub fn scatter_parts(&mut self, parts: &[ast::Operand], ty: ScalarType, regs: &[Operand]) -> Lowered {
        for (i, part) in parts.iter().enumerate() {
            let d = self.dest(part)?;
            if d == Operand::zero() {
                continue;
            }
            let at = i * ty.bits() as usize;
            match ty.bits() {
                64 => self.copy_words(d, [regs[at / 32], regs[at / 32 + 1]]),
                32 => self.widen_into(d, regs[at / 32], ty),
                _ => {
                    let narrow = self.temp();
                    self.extract(narrow, regs[at / 32], (at % 32 / 8) as u32, ty);
                    self.widen_into(d, narrow, ty);
                }
            }
        }
        Ok(())
    }

    /// Loads 256 bits of global memory into two tuples of four registers.
    fn load_wide(&mut self, place: Place, order: &Order) -> Vec<Operand> {
        let place = self.wide_place(place);
        let [(low, mut regs), (high, more)] = [(); 2].each(|()| self.temp_vector(4));
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        args.extend([(Role::D, low), (Role::E, high)]);
        self.address_args(place, order, &mut args);
        let mods = self.access_mods(SIZE_256, Window::Global, order);
        let inst = self.put(Op::LDG_256, &mods, &args);
        self.f[inst].ordered = order.strong;
        regs.extend(more);
        regs
    }

    /// The place with an offset that a 256-bit access takes: a multiple of 32 bytes.
    fn wide_place(&mut self, place: Place) -> Place {
        let place = Place { window: Window::Global, ..place };
        if place.offset % WIDE_UNIT == 0 && place.offset.abs() < WIDE_REACH {
            return place;
        }
        Place { base: self.add_offset(place.base, place.offset), offset: 0, ..place }
    }

    /// Loads a vector from a constant bank, word by word.
    fn load_pieces(&mut self, regs: &[Operand], bits: u32, place: Place, order: &Order) -> Lowered {
        let size = size_of_bits(bits.min(32))?;
        for (i, reg) in regs.iter().enumerate() {
            let piece = Place { offset: place.offset + 4 * i as i64, ..place };
            self.load_word(*reg, size, piece, order)?;
        }
        Ok(())
    }

    /// Extracts a value that starts at byte `byte`, extended by the sign of its type.
    pub fn extract(&mut self, d: Operand, a: Operand, byte: u32, ty: ScalarType) {
        let last = byte + ty.bits() / 8 - 1;
        // PRMT selector: per nibble a byte of `a`, plus 8 for copies of its sign; 7 is a zero byte
        // of RZ.
        let fill = if is_signed(ty) { 8 | last } else { 7 };
        let second = if ty.bits() == 16 { last } else { fill };
        let selector = self.imm(fill << 12 | fill << 8 | second << 4 | byte);
        self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, a), (Role::B, selector), (Role::C, Operand::zero())]);
    }

    /// Emits one load instruction.
    pub fn load_word(&mut self, d: Operand, size: M, place: Place, order: &Order) -> Lowered {
        self.load_listed(d, size, Listed::No, place, order)
    }

    /// Emits one load instruction of so many bits in values of so many; one of several words is
    /// listed where some values are not read.
    fn load_values(&mut self, d: Operand, size: M, bits: [u32; 2], place: Place, order: &Order) -> Lowered {
        let [all, one] = bits.map(|bits| bits.div_ceil(32) as u8);
        let listed = if all > one { Listed::Values(one) } else { Listed::No };
        self.load_listed(d, size, listed, place, order)
    }

    fn load_listed(&mut self, d: Operand, size: M, listed: Listed, place: Place, order: &Order) -> Lowered {
        if let Window::Bank(bank) = place.window {
            let from = Operand::constant(bank, place.offset as u16);
            let base = if place.base == Operand::zero() { Operand::NULL } else { place.base };
            self.put(Op::LDC, &[size], &[(Role::D, d), (Role::A, base), (Role::C, from)]);
            return Ok(());
        }
        let op = match place.window {
            Window::Global => Op::LDG,
            Window::Generic => Op::LD,
            Window::Shared => Op::LDS,
            _ => Op::LDL,
        };
        let mods = self.access_mods(size, place.window, order);
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        args.push((Role::D, d));
        self.address_args(place, order, &mut args);
        let inst = self.put(op, &mods, &args);
        (self.f[inst].ordered, self.f[inst].listed) = (order.strong, listed);
        Ok(())
    }

    /// Base, descriptor and offset operands of a memory instruction.
    pub fn address_args(&mut self, place: Place, order: &Order, args: &mut SmallVec<[(Role, Operand); 8]>) {
        args.push((Role::A, place.base));
        args.push((Role::Off, self.literal(place.offset)));
        if matches!(place.window, Window::Global | Window::Generic) && !order.plain {
            let descriptor = if order.policy.is_null() { self.descriptor() } else { order.policy };
            args.push((Role::Desc, descriptor));
        }
    }

    /// `st`
    pub fn store(&mut self, inst: &ast::Instruction) -> Lowered {
        if let Some((words, offset)) = self.words_at(&inst.operands[0]) {
            return self.store_words(inst, &words, offset);
        }
        let (ty, parts) = (inst.types[0], elements(&inst.operands[1]));
        let bits = ty.bits() * parts.len() as u32;
        if let Some((place, offset)) = self.scattered(&inst.operands[0], bits) {
            let words = self.frame_words(place.clone());
            self.store_words(inst, &words, offset)?;
            place.zip(words).for_each(|(n, word)| self.store_local(4 * n, word));
            return Ok(());
        }
        self.check_address_size(inst)?;
        let place = self.place(&inst.operands[0], inst.mods.space)?;
        let order = self.order(Access::St, inst, place.window)?;
        if bits == 256 {
            return self.store_wide(parts, ty, place, &order);
        }
        let value = if parts.len() == 1 {
            if ty.bits() <= 32 { self.source_word(&parts[0], ty)? } else { self.source(&parts[0], ty)? }
        } else {
            let words = self.gather(parts, ty)?;
            self.side_by_side(words)
        };
        self.before(&order);
        let op = match place.window {
            Window::Global => Op::STG,
            Window::Generic => Op::ST,
            Window::Shared => Op::STS,
            Window::Local => Op::STL,
            Window::Bank(_) => return Err(Refusal::NotBuilt),
        };
        let mods = self.access_mods(size_of_bits(bits)?, place.window, &order);
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, &order, &mut args);
        args.push((Role::B, value));
        let inst = self.put(op, &mods, &args);
        self.f[inst].ordered = order.strong;
        Ok(())
    }

    /// Stores 256 bits to global memory.
    fn store_wide(&mut self, parts: &[ast::Operand], ty: ScalarType, place: Place, order: &Order) -> Lowered {
        let mut low = self.gather(parts, ty)?;
        let high = low.split_off(low.len() / 2);
        let (low, high) = (self.side_by_side(low), self.side_by_side(high));
        let place = self.wide_place(place);
        self.before(order);
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, order, &mut args);
        args.extend([(Role::B, low), (Role::C, high)]);
        let mods = self.access_mods(SIZE_256, Window::Global, order);
        let inst = self.put(Op::STG_256, &mods, &args);
        self.f[inst].ordered = order.strong;
        Ok(())
    }

    /// Packs the elements of a vector store into words.
    pub fn gather(&mut self, parts: &[ast::Operand], ty: ScalarType) -> Lowered<Vec<Operand>> {
        let per_word = (32 / ty.bits()).max(1) as usize;
        let mut words: Vec<Operand> = Vec::new();
        for group in parts.chunks(per_word) {
            let mut values: SmallVec<[Operand; 4]> = SmallVec::new();
            for part in group {
                let value = self.source(part, ty)?;
                values.extend(self.words(value).into_iter().take(if ty.bits() == 64 { 2 } else { 1 }));
            }
            if per_word == 1 {
                words.extend(values);
            } else {
                words.push(self.pack(&values, ty.bits()));
            }
        }
        Ok(words)
    }

    /// Copies words to adjacent fresh registers; a single word may be in any register.
    pub fn side_by_side(&mut self, words: Vec<Operand>) -> Operand {
        if words.len() == 1 {
            return self.in_reg(words[0]);
        }
        let (vector, regs) = self.temp_vector(words.len());
        for (d, a) in regs.into_iter().zip(words) {
            self.copy(d, a);
        }
        vector
    }

    /// Packs the low bytes or halves of up to four values into one word, the first lowest.
    pub fn pack(&mut self, values: &[Operand], bits: u32) -> Operand {
        let mut level: Vec<Operand> = values.iter().map(|v| self.in_reg(*v)).collect();
        let mut bits = bits;
        while level.len() > 1 {
            let selector = self.imm(if bits == 8 { 0x0040 } else { 0x5410 });
            level = level
                .chunks(2)
                .map(|pair| {
                    let d = self.temp();
                    let high = pair.get(1).copied().unwrap_or(Operand::zero());
                    self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, pair[0]), (Role::B, selector), (Role::C, high)]);
                    d
                })
                .collect();
            bits *= 2;
        }
        level[0]
    }
}
