import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Mounts a file system of this size, in memory, on the folder. Needs root and Linux. */
export function mountSmallDisk(folder: string, sizeMb: number): void {
  mkdirSync(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m`, 'tmpfs', folder], { stdio: 'pipe' });
}

export function unmountSmallDisk(folder: string): void {
  execFileSync('umount', [folder], { stdio: 'pipe' });
}

/** Why no small file system can be made here; undefined where it can. */
export function mayMount(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'flash-sale-disk-'));
  try {
    mountSmallDisk(folder, 1);
    unmountSmallDisk(folder);
    return undefined;
  } catch {
    return 'a small file system cannot be mounted here (it needs root on Linux)';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
