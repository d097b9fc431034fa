"""A program that uses CUDA through ctypes. Tests start it with one of these commands:

hold CARD MIB ...       allocates so much of each card, prints "held", waits for the end of input
hammer CARD             allocates and frees memory of many sizes until it is killed
"""

import ctypes
import sys

MIB = 1 << 20
OUT_OF_MEMORY = 2


class Cuda:
    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.check(self.lib.cuInit(0))

    @staticmethod
    def check(result: int) -> None:
        if result:
            raise SystemExit(f"CUDA error {result}")

    def use(self, card: int) -> None:
        context = ctypes.c_void_p()
        self.check(self.lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), card))
        self.check(self.lib.cuCtxSetCurrent(context))

    def allocate(self, size: int) -> int | None:
        pointer = ctypes.c_uint64()
        result = self.lib.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
        if result == OUT_OF_MEMORY:
            return None
        self.check(result)
        return pointer.value

    def free(self, pointer: int) -> None:
        self.check(self.lib.cuMemFree_v2(ctypes.c_uint64(pointer)))


def hold(cuda: Cuda, pairs: list[int]) -> None:
    for card, mib in zip(pairs[::2], pairs[1::2], strict=True):
        cuda.use(card)
        if cuda.allocate(mib * MIB) is None:
            raise SystemExit("out of memory")
    sys.stdout.write("held\n")
    sys.stdout.flush()
    sys.stdin.read()


def hammer(cuda: Cuda, card: int) -> None:
    cuda.use(card)
    sys.stdout.write("hammering\n")
    sys.stdout.flush()
    held: list[int] = []
    size = 1
    while True:
        size = size * 5 % 4099 + 1
        pointer = cuda.allocate(size * 1024)
        if pointer is not None:
            held.append(pointer)
        if pointer is None or len(held) > 20:
            cuda.free(held.pop(len(held) // 2))


def main() -> None:
    command, *numbers = sys.argv[1:]
    arguments = [int(number) for number in numbers]
    cuda = Cuda()
    if command == "hold":
        hold(cuda, arguments)
    elif command == "hammer":
        hammer(cuda, *arguments)


if __name__ == "__main__":
    main()
