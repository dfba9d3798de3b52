import { Module } from '@nestjs/common';

/** The agent serves no commands: it acts on the log and speaks through it. */
@Module({})
export class AgentModule {}
