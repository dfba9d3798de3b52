import { Module } from '@nestjs/common';

/** A driver serves no commands: it acts on the log and speaks through it. */
@Module({})
export class ReplicaDriverModule {}
