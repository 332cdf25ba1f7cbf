//! Translates the functions of a module to a [`Program`].
//!
//! Each instruction becomes exactly one [`Inst`], so that a program position is a source position;
//! a final return follows. An instruction that the interpreter does not implement becomes
//! [`Act::Refused`] and faults only if it is reached.

use super::atomic::{Atomic, Element};
use super::barrier::{Barrier, Kind};
use super::bulk::Bulk;
use super::call::{Call, From, Stack, Target, To};
use super::cluster::{Cancel, Remote};
use super::int::CARRY;
use super::layout::{Layout, Place, variable};
use super::mbarrier::{self, Mbarrier};
use super::memory::{AddressOp, Copy, Part, Pieces, Transfer};
use super::operands::{Names, Refusal, cells_of, typed};
use super::program::{Act, Alu, Dst, Function, Home, Inst, Program, Src};
use super::tensor::{Mode, Replace, Tensor};
use super::warp::{Collective, How, Party};
use super::{compare, convert, float, int, logic, shapes, video, warp};
use crate::arrays::Each;
use crate::ptx::ast::{self, *};
use crate::tables::lowering::map_writes;
use crate::tables::ptx::{
    BulkFrom, BulkTo, CancelQuery, Modifiers, Multicast, Op, Role, ScalarType, Semantics, Space, SpecialRegister,
    TensorMode,
};
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;
use std::sync::Arc;

/// The warp operations seen so far; the index is their kind number.
type Kinds = Vec<(Op, Modifiers, SmallVec<[ScalarType; 2]>)>;

/// Translates all functions of a module.
pub fn build(module: &Module, layout: &Layout) -> Program {
    let mut kinds = Kinds::new();
    let functions =
        module.functions.iter().map(|(id, function)| build_function(module, layout, id, function, &mut kinds));
    Program { functions: functions.collect() }
}

fn build_function(
    module: &Module,
    layout: &Layout,
    id: FunctionId,
    function: &ast::Function,
    kinds: &mut Kinds,
) -> Function {
    let mut cells = SecondaryMap::new();
    // Cell 0 is the carry flag.
    let mut count = 1;
    let mut labels = vec!["the carry flag".to_string()];
    for (register, of) in function.registers.iter() {
        cells[register] = count;
        labels.extend(std::iter::repeat_n(of.name.clone(), (cells_of(of.ty) * of.vector) as usize));
        count += cells_of(of.ty) * of.vector;
    }
    let names = Names { module, layout, function, cells };
    let body = function.body.as_deref().unwrap_or_default();
    let mut targets = SecondaryMap::new();
    let mut at = 0u32;
    for statement in body {
        match statement {
            Statement::Label(label) => targets[*label] = at,
            Statement::Instruction(_) => at += 1,
            _ => {}
        }
    }
    let mut resolver = Resolver { names, targets, kinds };
    let mut insts = Vec::with_capacity(at as usize + 1);
    for statement in body {
        let Statement::Instruction(i) = statement else { continue };
        let guard = i.guard.map(|g| (resolver.names.predicate(g.register), g.negated));
        insts.push(Inst { pos: i.pos, guard, act: resolver.act(i) });
    }
    insts.push(Inst { pos: function.end, guard: None, act: Act::Return });
    let home = |p: &Parameter| resolver.home(p);
    Function {
        name: function.name.clone(),
        results: function.results.iter().map(home).collect(),
        params: function.params.iter().map(home).collect(),
        insts,
        cells: count,
        names: labels,
        frame: layout.frames[id.index()],
        has_body: function.body.is_some(),
    }
}

struct Resolver<'m, 'k> {
    names: Names<'m>,
    targets: SecondaryMap<LabelId, u32>,
    kinds: &'k mut Kinds,
}

/// Bits of an address within shared memory.
const SHARED: u64 = 0xff_ffff;

impl Resolver<'_, '_> {
    fn home(&self, parameter: &Parameter) -> Home {
        match parameter {
            Parameter::Memory(symbol) => {
                let size = variable(self.names.module, *symbol).map_or(0, |v| v.size);
                let offset = if let Place::Frame(at) = self.names.layout.places[*symbol] { at } else { 0 };
                Home::Local { offset, size }
            }
            Parameter::Register(register) => {
                let of = &self.names.function.registers[*register];
                let (each, size) = (cells_of(of.ty), u64::from(of.ty.bits().div_ceil(8)));
                Home::Cells { first: self.names.cells[*register], cells: each * of.vector.max(1), size, each }
            }
        }
    }

    fn act(&mut self, i: &Instruction) -> Act {
        self.resolve(i).unwrap_or_else(|reason| Act::Refused(format!("{} with {reason}", spelling(i))))
    }

    fn resolve(&mut self, i: &Instruction) -> Result<Act, Refusal> {
        match i.op {
            Op::Mov => self.mov(i),
            Op::Ld | Op::Ldu | Op::St => self.transfer(i),
            // One device has the only copy.
            Op::MultimemLdReduce | Op::MultimemSt => {
                let mut plain = i.clone();
                plain.op = if i.op == Op::MultimemSt { Op::St } else { Op::Ld };
                Arc::make_mut(&mut plain.mods).space = Some(Space::Global);
                plain.types[0] = match plain.types[0].bits() {
                    16 => ScalarType::B16,
                    32 => ScalarType::B32,
                    _ => ScalarType::B64,
                };
                self.transfer(&plain)
            }
            Op::MultimemRed => {
                let mut plain = i.clone();
                plain.op = Op::Red;
                Arc::make_mut(&mut plain.mods).space = Some(Space::Global);
                self.atomic(&plain)
            }
            // A thread has all registers that it names.
            Op::SetmaxnregInc | Op::SetmaxnregDec => Ok(Act::Nothing),
            Op::CpAsync => self.copy_async(i),
            Op::CpAsyncBulk | Op::CpReduceAsyncBulk => self.copy_in_bulk(i),
            Op::BarrierClusterArrive => Ok(Act::ClusterArrive),
            Op::BarrierClusterWait => {
                let number = Src::Imm(0);
                Ok(Act::ClusterWait(Box::new(Barrier {
                    kind: Kind::Sync,
                    number,
                    count: None,
                    predicate: None,
                    dst: None,
                })))
            }
            Op::StAsync | Op::RedAsync if i.mods.completion.is_none() => {
                let mut plain = i.clone();
                plain.op = if i.op == Op::StAsync { Op::St } else { Op::Red };
                if i.op == Op::StAsync { self.transfer(&plain) } else { self.atomic(&plain) }
            }
            Op::StAsync | Op::RedAsync => self.store_in_cluster(i),
            Op::CpAsyncBulkTensor | Op::CpReduceAsyncBulkTensor => self.copy_tensor(i),
            Op::Tex | Op::TexBase | Op::TexLevel | Op::TexGrad | Op::Tld4 => super::texture::sample(&self.names, i),
            Op::Txq | Op::TxqLevel | Op::Suq => super::texture::ask(&self.names, i),
            Op::Istypep => super::texture::is_type(&self.names, i),
            Op::SuldB | Op::SustB | Op::SustP | Op::SuredB | Op::SuredP => super::texture::surface(&self.names, i),
            Op::TensormapReplace => self.replace_in_map(i),
            Op::TensormapCpFenceproxy => {
                let [to, from, ..] = i.operands.as_slice() else { return Err("too few operands".into()) };
                let to = self.names.address(to, Some(Space::Global))?;
                Ok(Act::Publish(to, self.names.address(from, Some(Space::Shared))?))
            }
            Op::StBulk => {
                let [to, bytes, ..] = i.operands.as_slice() else { return Err("too few operands".into()) };
                let bytes = self.names.src(bytes, Some(ScalarType::U64))?;
                Ok(Act::Clear(self.names.address(to, i.mods.space)?, bytes))
            }
            Op::Atom | Op::Red => self.atomic(i),
            Op::MbarrierInit | Op::MbarrierInval | Op::MbarrierArrive | Op::MbarrierArriveDrop => self.mbarrier(i),
            Op::MbarrierExpectTx | Op::MbarrierCompleteTx | Op::MbarrierTestWait => self.mbarrier(i),
            Op::MbarrierTryWait | Op::CpAsyncMbarrierArrive => self.mbarrier(i),
            Op::MbarrierPendingCount => self.pending_count(i),
            Op::Cvta | Op::Isspacep => self.address_op(i),
            Op::Bra => self.branch(i),
            Op::BrxIdx => self.table(i),
            Op::Call => self.call(i),
            Op::Ret => Ok(Act::Return),
            Op::Exit => Ok(Act::Exit),
            Op::Trap => Ok(Act::Trap("trap")),
            Op::Brkpt => Ok(Act::Trap("breakpoint")),
            Op::BarSync | Op::BarArrive | Op::BarRed => self.barrier(i),
            Op::BarrierSync | Op::BarrierArrive | Op::BarrierRed => self.barrier(i),
            Op::ShflSync | Op::VoteSync | Op::MatchSync | Op::ReduxSync | Op::BarWarpSync => self.collective(i),
            Op::Activemask | Op::Shfl | Op::Vote | Op::ElectSync => self.collective(i),
            Op::Mma | Op::MmaSp | Op::MmaSpOrderedMetadata | Op::Ldmatrix | Op::Stmatrix | Op::Movmatrix => {
                self.matrix(i)
            }
            Op::WmmaLoadA | Op::WmmaLoadB | Op::WmmaLoadC | Op::WmmaStoreD | Op::WmmaMma => self.matrix(i),
            Op::WgmmaMmaAsync | Op::WgmmaMmaAsyncSp => {
                let kind = self.kind(i);
                Ok(Act::Collective(Box::new(super::group::resolve(&self.names, i, kind)?)))
            }
            Op::ClusterlaunchcontrolTryCancelAsync => {
                let [to, barrier] = i.operands.as_slice() else { return Err("these operands".into()) };
                let [to, barrier] = [to, barrier].each(|at| self.names.address(at, Some(Space::Shared)));
                Ok(Act::Cancel(Box::new(Cancel { to: to?, barrier: barrier?, all: i.mods.multicast_all })))
            }
            Op::ClusterlaunchcontrolQueryCancel => self.answer(i),
            Op::Tcgen05Alloc
            | Op::Tcgen05Dealloc
            | Op::Tcgen05RelinquishAllocPermit
            | Op::Tcgen05Ld
            | Op::Tcgen05LdRed
            | Op::Tcgen05St => {
                let kind = self.kind(i);
                Ok(Act::Collective(Box::new(super::tensor_memory::resolve(&self.names, i, kind)?)))
            }
            Op::Tcgen05Mma | Op::Tcgen05MmaSp | Op::Tcgen05MmaWs | Op::Tcgen05MmaWsSp => {
                super::tensor_unit::multiply(&self.names, i)
            }
            Op::Tcgen05Cp => super::tensor_unit::copies(&self.names, i),
            Op::Tcgen05Shift => super::tensor_unit::shifts(&self.names, i),
            Op::Tcgen05Commit => {
                // The unit takes the low word of an address, be it generic or not.
                let operand = i.operands.first().ok_or("too few operands")?;
                let mut address = self.names.address(operand, Some(Space::Shared))?;
                if let Src::Cell { mask, .. } = &mut address.base {
                    *mask &= SHARED;
                }
                let how = mbarrier::How::Arrive { drops: false };
                let blocks =
                    i.operands.get(1).map(|operand| self.names.src(operand, Some(mask_type(i)))).transpose()?;
                Ok(Act::Mbarrier(Box::new(Mbarrier { how, address, number: None, dst: None, blocks })))
            }
            Op::Tcgen05WaitLd
            | Op::Tcgen05WaitSt
            | Op::Tcgen05FenceBeforeThreadSync
            | Op::Tcgen05FenceAfterThreadSync => Ok(Act::Nothing),
            // The products of a warp group complete immediately.
            Op::WgmmaFence | Op::WgmmaCommitGroup | Op::WgmmaWaitGroup => Ok(Act::Nothing),
            // Memory is sequentially consistent here, sleeping takes no time, and there is no
            // cache.
            Op::FenceMbarrierInit
            | Op::FenceProxy
            | Op::MembarProxy
            | Op::Applypriority
            | Op::Discard
            | Op::PmeventMask => Ok(Act::Nothing),
            Op::GriddepcontrolWait | Op::GriddepcontrolLaunchDependents => Ok(Act::Nothing),
            // Copies complete immediately.
            Op::CpAsyncCommitGroup | Op::CpAsyncWaitGroup | Op::CpAsyncWaitAll => Ok(Act::Nothing),
            Op::CpAsyncBulkCommitGroup | Op::CpAsyncBulkWaitGroup | Op::CpAsyncBulkPrefetch => Ok(Act::Nothing),
            Op::CpAsyncBulkPrefetchTensor | Op::ApplypriorityAsyncBulk | Op::ApplypriorityAsyncBulkTensor => {
                Ok(Act::Nothing)
            }
            Op::PrefetchTensormap | Op::PrefetchParamTensormap | Op::PrefetchConstTensormap => Ok(Act::Nothing),
            // A cache policy is opaque to the program, so any number will do.
            Op::CreatepolicyRangeL2EvictLast
            | Op::CreatepolicyRangeL2EvictNormal
            | Op::CreatepolicyRangeL2EvictFirst
            | Op::CreatepolicyRangeL2EvictUnchanged
            | Op::CreatepolicyFractionalL2EvictLast
            | Op::CreatepolicyFractionalL2EvictNormal
            | Op::CreatepolicyFractionalL2EvictFirst
            | Op::CreatepolicyFractionalL2EvictUnchanged
            | Op::CreatepolicyCvt => {
                let to = self.names.dst(i.operands.first().ok_or("no result")?, i.types.first().copied())?;
                Ok(Act::Move { from: vec![(Src::Imm(0), 64)], to: vec![(to, 64)] })
            }
            Op::Membar | Op::Fence | Op::Prefetch | Op::Prefetchu | Op::Nanosleep | Op::Pmevent => Ok(Act::Nothing),
            _ if matches!(i.op.name(), "alloca" | "stacksave" | "stackrestore") => self.stack(i),
            _ => self.compute(i),
        }
    }

    fn compute(&self, i: &Instruction) -> Result<Act, Refusal> {
        let families: [fn(&Instruction) -> Option<Alu>; 6] =
            [compare::compile, logic::compile, float::compile, int::compile, convert::compile, video::compile];
        let f = families.iter().find_map(|family| family(i)).ok_or("these modifiers and types")?;
        let mut src: SmallVec<[Src; 4]> = SmallVec::new();
        let mut dst = SmallVec::new();
        for (arg, ty, operand) in typed(i) {
            match (arg.role, &operand.kind) {
                (Role::Pair | Role::Both | Role::Preds, OperandKind::Pair(pair)) => {
                    let first = ty.or(Some(ScalarType::Pred));
                    let (one, two) =
                        (self.names.dst(&pair.0, first)?, self.names.dst(&pair.1, Some(ScalarType::Pred))?);
                    // If both results name the same register, the first one stays, as with ptxas.
                    let same = one.zip(two).is_some_and(|(one, two)| one.cell == two.cell);
                    dst.extend([one, two.filter(|_| !same)]);
                }
                // The operation itself selects the part and the sign, so the whole register is
                // passed.
                (Role::Into | Role::Mask, _) => dst.push(self.names.dst(&whole(operand), ty)?),
                (Role::Part | Role::Npart | Role::Nsrc | Role::Lanes, _) => {
                    src.push(self.names.src(&whole(operand), ty)?);
                }
                (Role::Dst | Role::Odst | Role::Wdst | Role::Pair | Role::Both | Role::Preds, _) => {
                    dst.push(self.names.dst(operand, ty)?);
                }
                (Role::Fsrc, _) => {
                    for element in self.names.elements(operand) {
                        src.push(self.names.src(&element, ty)?);
                    }
                }
                _ => src.push(self.names.src(operand, ty)?),
            }
        }
        if matches!(i.op, Op::Mapa | Op::Getctarank) {
            src.push(Src::Special(SpecialRegister::ClusterCtarank, u64::MAX));
            src.push(Src::Special(SpecialRegister::ClusterNctarank, u64::MAX));
        }
        if matches!(i.op, Op::Addc | Op::Subc | Op::Madc) {
            src.resize(CARRY, Src::Imm(0));
            src.push(Src::Cell { cell: 0, mask: 1 });
        }
        if i.mods.carry_out {
            dst.push(Some(Dst { cell: 0, bits: 1, signed: false, mask: 1, above: false }));
        }
        Ok(Act::Compute { f, src, dst })
    }

    fn mov(&self, i: &Instruction) -> Result<Act, Refusal> {
        let ([to, from], Some(&ty)) = (i.operands.as_slice(), i.types.first()) else {
            return Err("these operands".into());
        };
        let (to, from) = (self.names.elements(to), self.names.elements(from));
        let each = |count: usize| if i.mods.vector.is_some() { ty.bits() } else { ty.bits() / count.max(1) as u32 };
        let (mut targets, mut sources) = (Vec::new(), Vec::new());
        for element in &from {
            let bits = each(from.len());
            let piece = if bits == ty.bits() { ty } else { self.names.piece(element, bits) };
            sources.extend(self.names.wide_src(element, piece)?.into_iter().map(|(src, _)| (src, bits.min(64))));
        }
        for element in &to {
            let bits = each(to.len());
            let piece = if bits == ty.bits() { ty } else { self.names.piece(element, bits) };
            targets.extend(self.names.wide_dst(element, piece)?.into_iter().map(|(dst, _)| (dst, bits.min(64))));
        }
        Ok(Act::Move { from: sources, to: targets })
    }

    /// `clusterlaunchcontrol.query_cancel`: x, y and z of a block in 32, 16 and 16 bits, then
    /// whether there is one.
    fn answer(&self, i: &Instruction) -> Result<Act, Refusal> {
        let [to, answer] = i.operands.as_slice() else { return Err("these operands".into()) };
        let from = self.names.wide_src(answer, ScalarType::B128)?;
        let ty = *i.types.first().ok_or("no type")?;
        let to = self.names.elements(to).iter().map(|e| self.names.dst(e, Some(ty))).collect::<Result<Vec<_>, _>>()?;
        let one = to.first().copied().flatten();
        let at = |n: usize| to.get(n).copied().flatten();
        let to = match i.mods.cancel_query.ok_or("no query")? {
            CancelQuery::IsCanceled => vec![(None, 64), (one, 1), (None, 63)],
            CancelQuery::GetFirstCtaid => vec![(at(0), 32), (at(1), 16), (at(2), 16), (None, 64)],
            CancelQuery::GetFirstCtaidX => vec![(one, 32), (None, 32), (None, 64)],
            CancelQuery::GetFirstCtaidY => vec![(None, 32), (one, 16), (None, 16), (None, 64)],
            CancelQuery::GetFirstCtaidZ => vec![(None, 48), (one, 16), (None, 64)],
        };
        Ok(Act::Move { from: from.into_iter().map(|(src, bits)| (src, bits.min(64))).collect(), to })
    }

    fn transfer(&self, i: &Instruction) -> Result<Act, Refusal> {
        let ty = *i.types.first().ok_or("no type")?;
        let loads = i.op != Op::St;
        let (memory, data) = if loads { (1, 0) } else { (0, 1) };
        let elements = self.names.elements(i.operands.get(data).ok_or("no data")?);
        let address = self.names.address(i.operands.get(memory).ok_or("no address")?, i.mods.space)?;
        let width = u64::from(ty.bits() / 8) * elements.len() as u64;
        let bytes = |bits: u32| u64::from(bits / 8);
        let pieces = if loads {
            let wide = elements.iter().map(|e| self.names.wide_dst(e, ty)).collect::<Result<Vec<_>, _>>()?;
            Pieces::Load(wide.into_iter().flatten().map(|(dst, bits)| (dst, bytes(bits))).collect())
        } else {
            let wide = elements.iter().map(|e| self.names.wide_src(e, ty)).collect::<Result<Vec<_>, _>>()?;
            Pieces::Store(wide.into_iter().flatten().map(|(src, bits)| (src, bytes(bits))).collect())
        };
        let strong = i.mods.mmio || i.mods.semantics.is_some_and(|semantics| semantics != Semantics::Weak);
        Ok(Act::Transfer(Box::new(Transfer { address, width, pieces, strong })))
    }

    /// `cp.async` (PTX ISA 9.7.9.25.3.1): bytes beyond the source size are zeros, and so is the
    /// whole copy if the ignore predicate is true.
    fn copy_async(&self, i: &Instruction) -> Result<Act, Refusal> {
        let operand = |n: usize| i.operands.get(n).ok_or("too few operands");
        let OperandKind::Constant(Constant::Int { bits: size, .. }) = operand(2)?.kind else {
            return Err("a size of this kind".into());
        };
        let rest = &i.operands[3..i.operands.len() - usize::from(i.mods.cache_hint)];
        let part = match rest.first() {
            None => Part::Whole,
            Some(operand) => match self.names.src(operand, Some(ScalarType::Pred)) {
                Ok(src) if self.is_predicate(operand) => Part::Ignored(src),
                _ => Part::Bytes(self.names.src(operand, Some(ScalarType::U32))?),
            },
        };
        let to = self.names.address(operand(0)?, Some(Space::Shared))?;
        let from = self.names.address(operand(1)?, Some(Space::Global))?;
        Ok(Act::Copy(Box::new(Copy { to, from, size, part })))
    }

    fn copy_in_bulk(&self, i: &Instruction) -> Result<Act, Refusal> {
        let [to, from, bytes, rest @ ..] = i.operands.as_slice() else { return Err("too few operands".into()) };
        let into_global = i.mods.bulk_to == Some(BulkTo::Global);
        let place = |global: bool| Some(if global { Space::Global } else { Space::Shared });
        let to = self.names.address(to, place(into_global))?;
        let from = self.names.address(from, place(i.mods.bulk_from == Some(BulkFrom::Global)))?;
        let bytes = self.names.src(bytes, Some(ScalarType::U32))?;
        let (ends, rest) = rest.split_at_checked(if i.mods.ignore_oob { 2 } else { 0 }).ok_or("too few operands")?;
        let ends = match ends {
            [left, right] => {
                Some([self.names.src(left, Some(ScalarType::U32))?, self.names.src(right, Some(ScalarType::U32))?])
            }
            _ => None,
        };
        let barrier = match rest.first().filter(|_| !into_global) {
            Some(operand) => Some(self.names.address(operand, Some(Space::Shared))?),
            None => None,
        };
        let mask = match rest.last().filter(|_| i.mods.byte_mask) {
            Some(operand) => Some(self.names.src(operand, Some(ScalarType::U16))?),
            None => None,
        };
        let blocks = match rest.get(1).filter(|_| i.mods.multicast.is_some()) {
            Some(operand) => Some(self.names.src(operand, Some(mask_type(i)))?),
            None => None,
        };
        let reduces = i.mods.atom_op.zip(i.types.first().copied());
        Ok(Act::Bulk(Box::new(Bulk { to, from, bytes, ends, barrier, reduces, mask, blocks })))
    }

    fn store_in_cluster(&self, i: &Instruction) -> Result<Act, Refusal> {
        let ([to, value, barrier], Some(&ty)) = (i.operands.as_slice(), i.types.first()) else {
            return Err("these operands".into());
        };
        let mut values = Vec::new();
        for value in self.names.elements(value) {
            values.extend(self.names.wide_src(&value, ty)?.into_iter().map(|(src, _)| src));
        }
        // A value of 128 bits is stored as its two halves.
        let ty = if ty.bits() > 64 { ScalarType::B64 } else { ty };
        let (to, barrier) = (self.names.address(to, i.mods.space)?, self.names.address(barrier, i.mods.space)?);
        Ok(Act::Remote(Box::new(Remote { to, values, ty, barrier, reduces: i.mods.atom_op })))
    }

    fn copy_tensor(&self, i: &Instruction) -> Result<Act, Refusal> {
        let pair = i.mods.cta_group.is_some_and(|group| group.name() == "cta_group::2");
        let loads = i.mods.bulk_to != Some(BulkTo::Global);
        let (shared, tensor) = if loads { (0, 1) } else { (1, 0) };
        let operand = |n: usize| i.operands.get(n).ok_or("too few operands");
        let tensor = operand(tensor)?;
        let OperandKind::Address(address) = &tensor.kind else { return Err("a tensor of this kind".into()) };
        let list = address.rest.first().ok_or("no coordinates")?;
        let corner = self.names.elements(list).into_iter().map(|c| self.names.src(&c, Some(ScalarType::S32)));
        let corner = corner.collect::<Result<_, _>>()?;
        let map = self.names.address(tensor, None)?;
        let shared = self.names.address(operand(shared)?, Some(Space::Shared))?;
        let barrier = if loads { Some(self.names.address(operand(2)?, Some(Space::Shared))?) } else { None };
        let mut rest = i.operands.iter().skip(if loads { 3 } else { 2 });
        let mode = match i.mods.tensor_mode {
            None | Some(TensorMode::Tile) => Mode::Tile,
            Some(TensorMode::TileGather4 | TensorMode::TileScatter4) => Mode::Rows,
            Some(TensorMode::Im2colNoOffs) => Mode::Pixels(Vec::new()),
            Some(TensorMode::Im2col) => {
                let list = self.names.elements(rest.next().ok_or("no offsets")?);
                let offsets = list.iter().map(|o| self.names.src(o, Some(ScalarType::U16)));
                Mode::Pixels(offsets.collect::<Result<_, _>>()?)
            }
            Some(TensorMode::Im2colW | TensorMode::Im2colW128) => return Err("rows of pixels with halos".into()),
        };
        let blocks = match rest.next().filter(|_| i.mods.multicast.is_some()) {
            Some(operand) => Some(self.names.src(operand, Some(mask_type(i)))?),
            None => None,
        };
        Ok(Act::Tensor(Box::new(Tensor { map, corner, mode, shared, barrier, reduces: i.mods.atom_op, blocks, pair })))
    }

    fn replace_in_map(&self, i: &Instruction) -> Result<Act, Refusal> {
        let field = i.mods.map_field.ok_or("no field")?.name();
        let number = match i.operands.get(1).map(|operand| &operand.kind) {
            Some(OperandKind::Constant(Constant::Int { bits, .. })) => *bits,
            _ => 0,
        };
        let index = if i.operands.len() > 2 { number as u8 } else { 0 };
        let fields = map_writes(field, index, number);
        let (Some(map), Some(value)) = (i.operands.first(), i.operands.last()) else {
            return Err("too few operands".into());
        };
        let value = self.names.src(value, i.types.first().copied())?;
        Ok(Act::Replace(Box::new(Replace { map: self.names.address(map, i.mods.space)?, fields, value })))
    }

    fn is_predicate(&self, operand: &Operand) -> bool {
        match &operand.kind {
            OperandKind::Register(r) => self.names.function.registers[r.register].ty == ScalarType::Pred,
            _ => false,
        }
    }

    fn atomic(&self, i: &Instruction) -> Result<Act, Refusal> {
        let (ty, op) = (*i.types.first().ok_or("no type")?, i.mods.atom_op.ok_or("no operation")?);
        let first = usize::from(i.op == Op::Atom);
        let address = self.names.address(i.operands.get(first).ok_or("no address")?, i.mods.space)?;
        let last = i.operands.len() - usize::from(i.mods.cache_hint);
        let operands: Vec<Vec<Operand>> =
            i.operands[(first + 1).min(last)..last].iter().map(|o| self.names.elements(o)).collect();
        let olds = if first == 1 { self.names.elements(&i.operands[0]) } else { Vec::new() };
        let count = operands.first().map_or(1, Vec::len);
        let mut elements = Vec::new();
        for n in 0..count {
            let wide = |o: &Vec<Operand>| {
                let element = o.get(n).ok_or("vectors of two lengths")?;
                Ok::<_, Refusal>(self.names.wide_src(element, ty)?.into_iter().map(|(src, _)| src).collect())
            };
            let old = match olds.get(n) {
                Some(operand) => self.names.wide_dst(operand, ty)?.into_iter().map(|(dst, _)| dst).collect(),
                None => SmallVec::new(),
            };
            elements.push(Element { old, operands: operands.iter().map(wide).collect::<Result<_, _>>()? });
        }
        Ok(Act::Atomic(Box::new(Atomic { address, op, ty, keeps: i.mods.noftz, elements })))
    }

    fn mbarrier(&self, i: &Instruction) -> Result<Act, Refusal> {
        use mbarrier::How;
        let drops = i.op == Op::MbarrierArriveDrop;
        let how = match i.op {
            Op::MbarrierInit => How::Init,
            Op::MbarrierInval => How::Inval,
            Op::MbarrierArrive | Op::MbarrierArriveDrop if i.mods.expect_tx => How::ArriveAndExpect { drops },
            Op::MbarrierArrive | Op::MbarrierArriveDrop => How::Arrive { drops },
            Op::MbarrierExpectTx => How::Expect,
            Op::MbarrierCompleteTx => How::Complete,
            Op::CpAsyncMbarrierArrive => How::Copies { counted: !i.mods.noinc },
            _ => How::Check { parity: i.mods.parity },
        };
        let args = typed(i);
        let memory = args.iter().position(|(arg, ..)| arg.role == Role::Mem).ok_or("no address")?;
        let address = self.names.address(args[memory].2, i.mods.space)?;
        let dst = if memory == 1 { self.names.dst(args[0].2, args[0].1)? } else { None };
        let (numbers, masks) = match args[memory + 1..].split_last() {
            Some((mask, numbers)) if i.mods.multicast.is_some() => (numbers, Some(mask)),
            _ => (&args[memory + 1..], None),
        };
        let [number, blocks] =
            [numbers.first(), masks].each(|arg| arg.map(|(_, ty, operand)| self.names.src(operand, *ty)).transpose());
        Ok(Act::Mbarrier(Box::new(Mbarrier { how, address, number: number?, dst, blocks: blocks? })))
    }

    fn pending_count(&self, i: &Instruction) -> Result<Act, Refusal> {
        let args = typed(i);
        let [(_, to, dst), (_, from, src)] = args.as_slice() else { return Err("these operands".into()) };
        let f: Alu = Box::new(|s| [crate::sim::ops::mbarrier::Barrier::of(s[0]).pending, 0]);
        let (src, dst) = (self.names.src(src, *from)?, self.names.dst(dst, *to)?);
        Ok(Act::Compute { f, src: smallvec::smallvec![src], dst: smallvec::smallvec![dst] })
    }

    fn address_op(&self, i: &Instruction) -> Result<Act, Refusal> {
        let space = i.mods.space.ok_or("no state space")?;
        let args = typed(i);
        let [(_, to, dst), (_, from, src)] = args.as_slice() else { return Err("these operands".into()) };
        let how = match i.op {
            Op::Isspacep => AddressOp::IsIn(space),
            _ if i.mods.to => AddressOp::FromGeneric(space),
            _ => AddressOp::ToGeneric(space),
        };
        let dst = self.names.dst(dst, *to)?.ok_or("no result")?;
        Ok(Act::Address { how, src: self.names.src(src, *from)?, dst })
    }

    fn branch(&self, i: &Instruction) -> Result<Act, Refusal> {
        match i.operands.first().map(|o| &o.kind) {
            Some(OperandKind::Label(label)) => Ok(Act::Branch(self.targets[*label])),
            _ => Err("a target of this kind".into()),
        }
    }

    fn table(&self, i: &Instruction) -> Result<Act, Refusal> {
        let [index, Operand { kind: OperandKind::Label(label), .. }] = i.operands.as_slice() else {
            return Err("targets of this kind".into());
        };
        let targets = self.names.function.labels[*label].targets.iter().map(|label| self.targets[*label]);
        Ok(Act::Table(self.names.src(index, Some(ScalarType::U32))?, targets.collect()))
    }

    fn call(&self, i: &Instruction) -> Result<Act, Refusal> {
        let [results, callee, arguments, ..] = i.operands.as_slice() else { return Err("these operands".into()) };
        let (OperandKind::List(results), OperandKind::List(arguments)) = (&results.kind, &arguments.kind) else {
            return Err("these operands".into());
        };
        let (target, callee) = match &callee.kind {
            OperandKind::Symbol { symbol, .. } => {
                let id = self.names.callee(*symbol).ok_or("a target that is no function")?;
                (Target::Function(id.index()), Some(&self.names.module.functions[id]))
            }
            _ => (Target::Address(self.names.src(callee, None)?), None),
        };
        let args = arguments.iter().enumerate().map(|(n, o)| self.argument(o, n, callee)).collect::<Result<_, _>>()?;
        let results = results.iter().map(|o| self.result(o)).collect::<Result<_, _>>()?;
        Ok(Act::Call(Box::new(Call { target, args, results })))
    }

    fn stack(&self, i: &Instruction) -> Result<Act, Refusal> {
        let args = typed(i);
        let (_, ty, first) = *args.first().ok_or("no operand")?;
        let dst = |resolver: &Self| resolver.names.dst(first, ty)?.ok_or(Refusal::from("no result"));
        Ok(Act::Stack(match (i.op.name(), args.as_slice()) {
            ("stacksave", _) => Stack::Save(dst(self)?),
            ("stackrestore", _) => Stack::Restore(self.names.src(first, ty)?),
            (_, [_, (_, ty, size), rest @ ..]) => {
                let align = match rest.first().map(|(_, _, operand)| &operand.kind) {
                    Some(OperandKind::Constant(Constant::Int { bits, .. })) => {
                        (*bits).clamp(1, 1 << 20).next_power_of_two()
                    }
                    _ => 8,
                };
                Stack::Take { size: self.names.src(size, *ty)?, align, dst: dst(self)? }
            }
            _ => return Err("these operands".into()),
        }))
    }

    /// The offset and size of a `.param` variable in the frame.
    fn in_frame(&self, operand: &Operand) -> Option<(u64, u64)> {
        let OperandKind::Symbol { symbol, offset: 0, .. } = operand.kind else { return None };
        let of = variable(self.names.module, symbol)?;
        match self.names.layout.places[symbol] {
            Place::Frame(offset) if of.space != Space::Local => Some((offset, of.size)),
            _ => None,
        }
    }

    fn argument(&self, operand: &Operand, number: usize, callee: Option<&ast::Function>) -> Result<From, Refusal> {
        if let Some((offset, size)) = self.in_frame(operand) {
            return Ok(From::Frame { offset, size });
        }
        let ty = callee.and_then(|f| match f.params.get(number)? {
            Parameter::Register(register) => Some(f.registers[*register].ty),
            Parameter::Memory(symbol) => variable(self.names.module, *symbol).map(|v| v.ty),
        });
        let own = match &operand.kind {
            OperandKind::Register(used) => Some(self.names.function.registers[used.register].ty),
            _ => ty,
        };
        let elements = self.names.elements(operand);
        let wide = elements.iter().map(|e| self.names.wide_src(e, own.unwrap_or(ScalarType::B64)));
        let cells = wide.collect::<Result<Vec<_>, _>>()?;
        Ok(From::Cells(cells.into_iter().flatten().map(|(src, _)| src).collect()))
    }

    fn result(&self, operand: &Operand) -> Result<To, Refusal> {
        if let Some((offset, size)) = self.in_frame(operand) {
            return Ok(To::Frame { offset, size });
        }
        let ty = match &operand.kind {
            OperandKind::Register(used) => self.names.function.registers[used.register].ty,
            _ => ScalarType::B64,
        };
        let elements = self.names.elements(operand);
        let cells = elements.iter().map(|e| self.names.wide_dst(e, ty)).collect::<Result<Vec<_>, _>>()?;
        Ok(To::Cells(cells.into_iter().flatten().map(|(dst, _)| dst).collect()))
    }

    fn barrier(&self, i: &Instruction) -> Result<Act, Refusal> {
        let kind = match i.op {
            Op::BarSync | Op::BarrierSync => Kind::Sync,
            Op::BarArrive | Op::BarrierArrive => Kind::Arrive,
            _ => Kind::Reduce(i.mods.barrier_op.ok_or("no operation")?),
        };
        let (mut numbers, mut predicate, mut dst) = (Vec::new(), None, None);
        for (arg, ty, operand) in typed(i) {
            match arg.role {
                Role::Dst => dst = self.names.dst(operand, ty)?,
                Role::Pred => predicate = Some(self.names.src(operand, Some(ScalarType::Pred))?),
                _ => numbers.push(self.names.src(operand, ty)?),
            }
        }
        let number = *numbers.first().ok_or("no barrier")?;
        Ok(Act::Barrier(Box::new(Barrier { kind, number, count: numbers.get(1).copied(), predicate, dst })))
    }

    /// The kind number of a warp operation: equal for equal operations, modifiers and types.
    fn kind(&mut self, i: &Instruction) -> u32 {
        let key = (i.op, *i.mods, i.types.clone());
        let found = self.kinds.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.kinds.push(key);
            self.kinds.len() - 1
        });
        found as u32
    }

    fn collective(&mut self, i: &Instruction) -> Result<Act, Refusal> {
        let together = warp::compile(i).ok_or("these modifiers and types")?;
        let (mut src, mut dst) = (Vec::new(), Vec::new());
        for (arg, ty, operand) in typed(i) {
            match (arg.role, &operand.kind) {
                (Role::Pair | Role::Both, OperandKind::Pair(pair)) => {
                    dst.push(self.names.dst(&pair.0, ty)?);
                    dst.push(self.names.dst(&pair.1, Some(ScalarType::Pred))?);
                }
                (Role::Dst | Role::Pair, _) => dst.push(self.names.dst(operand, ty)?),
                _ => src.push(self.names.src(operand, ty)?),
            }
        }
        let party = match i.op {
            Op::Activemask | Op::Shfl | Op::Vote => Party::Company,
            _ => Party::Mask(src.pop().ok_or("no mask")?),
        };
        let (kind, how) = (self.kind(i), How::Together(together));
        Ok(Act::Collective(Box::new(Collective { kind, party, src, dst, address: None, how })))
    }

    fn matrix(&mut self, i: &Instruction) -> Result<Act, Refusal> {
        let kind = self.kind(i);
        Ok(Act::Collective(Box::new(shapes::resolve(&self.names, i, kind)?)))
    }
}

/// A register operand without its part and sign.
fn whole(operand: &Operand) -> Operand {
    let mut operand = operand.clone();
    if let OperandKind::Register(used) = &mut operand.kind {
        used.part = ast::Part::Whole;
        used.negate = false;
    }
    operand
}

/// The name and types of an instruction, for messages.
fn spelling(i: &Instruction) -> String {
    i.types.iter().fold(i.op.name().to_string(), |text, ty| text + "." + ty.name())
}

/// The type of a mask of blocks.
fn mask_type(i: &Instruction) -> ScalarType {
    let wide = i.mods.multicast == Some(Multicast::MulticastCluster32b);
    if wide { ScalarType::U32 } else { ScalarType::U16 }
}
