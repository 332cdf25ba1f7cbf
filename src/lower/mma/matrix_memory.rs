//! `wmma.load` and `wmma.store`: fragments between registers and memory.
//!
//! Accesses whole words. If the elements of a register are not adjacent in memory, words of 16-bit
//! elements are those of the transposed matrix, which MOVM turns; others are put together from
//! single elements. `tables/lowering/tiles.ron` alone says which element a register holds. Source:
//! ptxas 13.0.88 does the same.

use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::lower::memory::address::{Place, Window, window_of};
use crate::lower::memory::memory_model::Order;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::lowering::{self, Tile};
use crate::tables::ptx::{Layout, Op as PtxOp, ScalarType, SpecialRegister};
use crate::tables::{Mod, Op, Role, value};
use smallvec::SmallVec;

/// A matrix in memory.
struct Matrix {
    tile: &'static Tile,
    ty: ScalarType,
    order: Order,
    /// Whether the elements of a register are adjacent in memory.
    natural: bool,
    /// Whether they are in the transposed matrix, whose words are accessed instead.
    turned: bool,
    stride: Stride,
    /// Address of the lane's own first element.
    place: Place,
    /// Addresses of lines computed so far: line, address.
    lines: Vec<(u32, Place)>,
}

/// Bytes from one row (or column) to the next.
#[derive(Clone, Copy)]
enum Stride {
    Known(u32),
    In(Operand),
}

impl Builder<'_> {
    /// `wmma.load`
    pub fn load_fragment(&mut self, inst: &ast::Instruction) -> Lowered {
        let part = match inst.op {
            PtxOp::WmmaLoadA => 'a',
            PtxOp::WmmaLoadB => 'b',
            _ => 'c',
        };
        let mut matrix = self.matrix(inst, part, 1)?;
        let mut done: Vec<((u8, u8), [Operand; 2])> = Vec::new();
        let mut words = Vec::new();
        for at in matrix.tile.tiles {
            let loaded = match done.iter().find(|(known, _)| known == at) {
                Some((_, loaded)) => *loaded,
                None => self.load_register(&mut matrix, *at)?,
            };
            done.push((*at, loaded));
            words.extend(loaded.into_iter().take(if matrix.ty.bits() == 64 { 2 } else { 1 }));
        }
        let word = if matrix.ty.bits() == 64 { ScalarType::F64 } else { ScalarType::B32 };
        self.scatter(&inst.operands[0], word, &words)
    }

    /// `wmma.store`
    pub fn store_fragment(&mut self, inst: &ast::Instruction) -> Lowered {
        let mut matrix = self.matrix(inst, 'c', 0)?;
        let wide = matrix.ty.bits() == 64;
        let words = self.fragment_words(&inst.operands[1], if wide { ScalarType::F64 } else { ScalarType::B32 })?;
        for (i, at) in matrix.tile.tiles.iter().enumerate() {
            let value = if wide { self.pair_of([words[2 * i], words[2 * i + 1]]) } else { self.in_reg(words[i]) };
            self.store_register(&mut matrix, *at, value)?;
        }
        Ok(())
    }

    fn matrix(&mut self, inst: &ast::Instruction, part: char, address: usize) -> Lowered<Matrix> {
        let (shape, ty) = (inst.mods.matrix_shape.ok_or(Refusal::NotBuilt)?, inst.types[0]);
        let tile = lowering::tile(self.target, part, shape, ty).ok_or(Refusal::NotBuilt)?;
        let rows = inst.mods.layout == Some(Layout::Row);
        let stride = match inst.operands.get(2) {
            None => Stride::Known(default_stride(shape.name(), part, rows) * ty.bits() / 8),
            Some(operand) => {
                let elements = self.source(operand, ScalarType::B32)?;
                match self.constant(elements) {
                    Some(n) => Stride::Known((n as u32).wrapping_mul(ty.bits()) / 8),
                    None => Stride::In(self.bytes_of(elements, ty)),
                }
            }
        };
        let place = self.place(&inst.operands[address], inst.mods.space)?;
        if !matches!(place.window, Window::Global | Window::Generic | Window::Shared) {
            return Err(Refusal::NotBuilt);
        }
        self.all_lanes();
        let order = Order::default();
        debug_assert!(window_of(inst.mods.space).is_ok());
        let natural = rows == tile.rows;
        // MOVM turns 8 rows of 8 elements.
        let turned = !natural && ty.bits() == 16 && tile.per == 2;
        let mut matrix = Matrix { tile, ty, order, natural, turned, stride, place, lines: Vec::new() };
        self.lane_address(&mut matrix)?;
        Ok(matrix)
    }

    /// Converts a number of elements to bytes.
    fn bytes_of(&mut self, elements: Operand, ty: ScalarType) -> Operand {
        let d = self.temp();
        if ty.bits() < 8 {
            let amount = self.imm((8 / ty.bits()).trailing_zeros());
            self.shf(&SHF_R_U32_HI, d, Operand::zero(), amount, elements);
        } else {
            let size = self.imm(ty.bits() / 8);
            self.imad(d, elements, size, Operand::zero());
        }
        d
    }

    /// Moves the address to the lane's own element: lane / 4 across, a multiple of lane % 4 along;
    /// the other way round in a transposed matrix.
    fn lane_address(&mut self, m: &mut Matrix) -> Lowered {
        let lane = self.special_source(SpecialRegister::Laneid)?;
        let (group, low, in_group) = (self.temp(), self.imm(3), self.temp());
        let two = self.imm(2);
        self.shf(&SHF_R_U32_HI, group, Operand::zero(), two, lane);
        self.and(in_group, lane, low);
        let per = if m.tile.per == 0 { 2 } else { u32::from(m.tile.per) };
        // Lines are a stride apart, elements in a line the size of an element.
        let (line, place, lines, places) =
            if m.natural || m.turned { (group, in_group, 1, per) } else { (in_group, group, per, 1) };
        let (near, offset) = (self.temp(), self.temp());
        let bytes = self.imm((places * m.ty.bits()).div_ceil(8));
        self.imad(near, place, bytes, Operand::zero());
        match m.stride {
            Stride::Known(stride) => {
                let stride = self.imm(stride.wrapping_mul(lines));
                self.imad(offset, line, stride, near);
            }
            Stride::In(stride) => {
                let (scaled, times) = (self.temp(), self.imm(lines));
                self.imad(scaled, line, times, Operand::zero());
                self.imad(offset, scaled, stride, near);
            }
        }
        m.place.base = self.moved(m.place, offset);
        Ok(())
    }

    /// Adds an offset in a register to the base of a place.
    fn moved(&mut self, place: Place, offset: Operand) -> Operand {
        if place.window == Window::Shared {
            let (sum, base) = (self.temp(), self.low_word(place.base));
            self.add(sum, offset, base);
            return sum;
        }
        let (sum, a) = (self.temp_pair(), self.words(place.base));
        let d = self.words(sum);
        self.add_long(d, a, [offset, Operand::zero()], false);
        sum
    }

    /// The address of the element at (across, along).
    fn element(&mut self, m: &mut Matrix, across: u32, along: u32) -> Place {
        let (line, near) = if m.natural { (across, along) } else { (along, across) };
        let near = i64::from(near * m.ty.bits() / 8);
        let base = match (m.lines.iter().find(|(known, _)| *known == line), m.stride) {
            (Some((_, place)), _) => *place,
            (None, Stride::Known(stride)) => {
                let offset = m.place.offset + i64::from(line.wrapping_mul(stride));
                self.fitted(Place { offset, ..m.place })
            }
            (None, Stride::In(_)) if line == 0 => m.place,
            (None, Stride::In(stride)) => {
                let (offset, times) = (self.temp(), self.imm(line));
                self.imad(offset, stride, times, Operand::zero());
                Place { base: self.moved(m.place, offset), ..m.place }
            }
        };
        m.lines.push((line, base));
        self.fitted(Place { offset: base.offset + near, ..base })
    }

    /// Number of elements in one register.
    fn elements_of(m: &Matrix) -> u32 {
        if m.ty.bits() < 32 { u32::from(m.tile.per) } else { 1 }
    }

    fn load_register(&mut self, m: &mut Matrix, (across, along): (u8, u8)) -> Lowered<[Operand; 2]> {
        let (across, along) = (u32::from(across), u32::from(along));
        let (count, bits) = (Self::elements_of(m), m.ty.bits());
        if count == 1 || m.natural || m.turned {
            let place = self.element(m, across, along);
            let d = if bits == 64 { self.temp_pair() } else { self.temp() };
            self.load_word(d, if bits == 64 { SIZE_64 } else { SIZE_32 }, place, &m.order)?;
            let d = if m.turned { self.turn(d) } else { d };
            return Ok(self.words(d));
        }
        let mut values: SmallVec<[Operand; 4]> = SmallVec::new();
        for i in 0..count {
            let place = self.element(m, across, along + i);
            let d = self.temp();
            self.load_word(d, if bits == 8 { SIZE_U8 } else { SIZE_U16 }, place, &m.order)?;
            values.push(d);
        }
        let word = self.pack(&values, bits);
        Ok([word, word])
    }

    fn store_register(&mut self, m: &mut Matrix, (across, along): (u8, u8), value: Operand) -> Lowered {
        let (across, along) = (u32::from(across), u32::from(along));
        let (count, bits) = (Self::elements_of(m), m.ty.bits());
        if count == 1 || m.natural || m.turned {
            let value = if m.turned { self.turn(value) } else { value };
            let place = self.element(m, across, along);
            return self.store_word(value, if bits == 64 { SIZE_64 } else { SIZE_32 }, place, &m.order);
        }
        for i in 0..count {
            let place = self.element(m, across, along + i);
            let part = self.temp();
            let amount = self.imm(i * bits);
            self.shf(&SHF_R_U32_HI, part, Operand::zero(), amount, value);
            self.store_word(part, if bits == 8 { SIZE_U8 } else { SIZE_U16 }, place, &m.order)?;
        }
        Ok(())
    }

    /// Transposes 8 rows of 8 elements of 16 bits, of which each lane has two in one row.
    pub fn turn(&mut self, word: Operand) -> Operand {
        let d = self.temp();
        self.all_lanes();
        self.put(Op::MOVM, &[(Mod::Mlayout, value::mlayout::MT88)], &[(Role::D, d), (Role::A, word)]);
        d
    }

    /// Emits one store instruction.
    pub fn store_word(&mut self, value: Operand, size: M, place: Place, order: &Order) -> Lowered {
        let op = match place.window {
            Window::Global => Op::STG,
            Window::Generic => Op::ST,
            _ => Op::STS,
        };
        let mods = self.access_mods(size, place.window, order);
        let mut args: SmallVec<[(Role, Operand); 8]> = SmallVec::new();
        self.address_args(place, order, &mut args);
        args.push((Role::B, value));
        self.put(op, &mods, &args);
        Ok(())
    }
}

/// Elements from one line to the next if no stride is given: the length of a row (or column).
fn default_stride(shape: &str, part: char, rows: bool) -> u32 {
    let mut numbers = shape.split(['m', 'n', 'k']).filter_map(|n| n.parse::<u32>().ok());
    let mut next = || numbers.next().unwrap_or(0);
    let (m, n, k) = (next(), next(), next());
    match (part, rows) {
        ('a', true) | ('b', false) => k,
        ('a', false) => m,
        ('b', true) => n,
        (_, true) => n,
        _ => m,
    }
}
